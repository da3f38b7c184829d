"""Some documents in the order of their terms: by the walk of the terms, and by where each of them stands."""

from __future__ import annotations

from random import Random

import pytest
from pyroaring import BitMap
from svc_query.indexing.term_tail import TermTail
from svc_query.segments import TermIndexReader, TermIndexWriter
from svc_query.segments.ranks import is_worth_ranking


def written(directory, documents, *, ordered=True):
    """An index of one segment: of the terms of each document, by number."""
    writer = TermIndexWriter(directory, None, ordered=ordered)
    for number, terms in documents.items():
        writer.add(number, terms)
    writer.flush()
    return writer


def read(directory, writer, *, ordered=True):
    return TermIndexReader(directory, writer.manifest, ordered=ordered)


def term_of(place):
    return f"term {place:06}".encode()


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ({number: [term_of(number)] for number in range(1, 700)}, True),
        ({3: [b"a"], 5: [b"b"], 4_000_000: [b"c"]}, True),
        ({number: [term_of(1_000 - number)] for number in range(1, 700)}, False),
        ({1: [b"a"], 2: [b"c"], 3: [b"b"]}, False),
        ({1: [b"a"], 2: [b"a"], 3: [b"b"]}, False),
        ({**{number: [term_of(number)] for number in range(1, 700)}, 700: [term_of(0)]}, False),
    ],
)
def test_a_segment_says_whether_numbers_increase_with_its_terms(tmp_path, documents, expected):
    reader = read(tmp_path, written(tmp_path, documents))
    ascending, others = reader.apart()
    assert [list(one) for one in ascending] == ([sorted(documents)] if expected else [])
    assert others.segments == (0 if expected else 1)
    reader.close()


def test_no_segment_that_is_not_ordered_says_so(tmp_path):
    reader = read(tmp_path, written(tmp_path, {1: [b"a"], 2: [b"b"]}, ordered=False), ordered=False)
    assert reader.apart()[0] == []
    reader.close()


@pytest.mark.parametrize("in_order", [True, False])
def test_a_merge_finds_it_out_anew(tmp_path, in_order):
    writer = TermIndexWriter(tmp_path, None, ordered=True)
    for part in range(8):
        for number in range(part * 10 + 1, part * 10 + 11):
            writer.add(number, [term_of(number if in_order else 100 - number // 10)])
        writer.flush()
    merge = writer.merge_plan(writer.manifest, BitMap())
    for _ in merge.run():
        pass
    writer.manifest = merge.apply(writer.manifest)
    reader = read(tmp_path, writer)
    assert reader.segments == 1
    assert bool(reader.apart()[0]) is in_order
    reader.close()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("per_term", [1, 2, 40])
def test_some_documents_come_in_the_order_of_their_terms(tmp_path, reverse, per_term):
    random = Random(per_term)
    places = list(range(4_000))
    random.shuffle(places)
    documents = {number: [term_of(place // per_term)] for number, place in enumerate(places, 10)}
    reader = read(tmp_path, written(tmp_path, documents))
    for _ in range(30):
        among = BitMap(random.sample(range(1, 4_500), random.choice((1, 7, 300, 3_000))))
        low, high = (random.choice((None, term_of(random.randrange(4_000 // per_term)))) for _ in range(2))
        expected: dict[bytes, set[int]] = {}
        for number in among:
            for term in documents.get(number, ()):
                if (low is None or low <= term) and (high is None or term < high):
                    expected.setdefault(term, set()).add(number)
        found = [
            (term, set(some)) for term, some in reader.scan_among(low, high, among, reverse=reverse) if some
        ]
        assert found == sorted(expected.items(), reverse=reverse)
        lists = reader.in_order(low, high, among, reverse=reverse)
        if lists is not None:
            flat = [number for one in lists for number in one]
            assert [documents[number][0] for number in flat] == [
                term for term, some in found for _ in range(len(some))
            ]
            assert set(flat) == {number for some in expected.values() for number in some}
    few = BitMap(list(documents)[:20])
    assert (reader.in_order(None, None, few, reverse=reverse) is None) is (per_term == 40)
    reader.close()


def test_documents_of_several_terms_are_not_put_in_order_so(tmp_path):
    reader = read(tmp_path, written(tmp_path, {number: [b"a", term_of(number)] for number in range(1, 500)}))
    assert reader.in_order(None, None, BitMap([1, 2, 3]), reverse=False) is None
    assert reader.in_order(None, None, BitMap([900]), reverse=False) == []
    reader.close()


def test_nor_are_those_that_are_far_apart(tmp_path):
    assert is_worth_ranking(2, BitMap(range(1, 101)), 100)
    assert not is_worth_ranking(2, BitMap(range(1, 100_001, 1_000)), 100)
    assert not is_worth_ranking(50, BitMap(range(1, 101)), 100)
    assert not is_worth_ranking(2, BitMap(range(1, 101)), 150)


def test_a_tail_puts_documents_in_order_too():
    tail = TermTail()
    for number, term in ((4, b"b"), (5, b"a"), (6, b"c"), (7, b"a")):
        tail.add(number, [term])
    assert tail.in_order(None, b"c", BitMap([4, 6, 7]), reverse=False) == [7, 4]
    assert tail.in_order(b"a\0", None, BitMap([4, 6, 7]), reverse=True) == [6, 4]
    tail.add(8, [b"x", b"y"])
    assert tail.in_order(None, None, BitMap([4, 8]), reverse=False) is None


def test_documents_are_added_at_once_as_one_by_one(tmp_path):
    documents = [(3, frozenset((b"a", b"b"))), (1, frozenset()), (2, (b"a",)), (9, frozenset((b"c",)))]
    for ordered in (True, False):
        one, other = (TermIndexWriter(tmp_path / f"{name}{ordered}", None, ordered=ordered) for name in "ab")
        one.add_all(documents)
        for document in documents:
            other.add(*document)
        assert one.pending == other.pending == 4
        found = []
        for directory, writer in (("a", one), ("b", other)):
            writer.flush()
            reader = read(tmp_path / f"{directory}{ordered}", writer, ordered=ordered)
            found.append([(term, list(numbers)) for term, numbers in reader.scan()])
            reader.close()
        assert found[0] == found[1] == [(b"a", [2, 3]), (b"b", [3]), (b"c", [9])]
