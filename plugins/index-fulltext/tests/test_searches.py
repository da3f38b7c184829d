"""Searches, compared with an evaluator that shares no code with the plugin; the syntax; where words are."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap
from svc_index_fulltext import reading
from svc_index_fulltext.index_type import FulltextIndexType
from svc_index_fulltext.operator import SearchOperator
from svc_index_fulltext.scoring import score_of
from svc_query.api import IndexDocument, Leaf

from svc.errors import CorruptRecord, InvalidInput

TYPE = FulltextIndexType()
LETTERS = "abc"


def compiled(text, **options):
    leaf = Leaf(field="text", op="search", value=text, index_options={"fulltext": TYPE.normalize(options)})
    return SearchOperator().compile(leaf)


def written(directory, texts, **options):
    """An index of documents that are numbered from 0; values of one are separated by ``|``."""
    known = TYPE.normalize(options)
    directory.mkdir(exist_ok=True)
    writer = TYPE.open_writer(directory, known, None)
    documents = [IndexDocument(n, (f"{n}",), text.split("|")) for n, text in enumerate(texts)]
    writer.add(documents)
    state = writer.flush(BitMap())
    writer.close()
    return TYPE.open_reader(directory, known, state)


def found(reader, text, **options):
    return sorted(compiled(text, **options).candidates({"fulltext": reader}))


# -- the evaluator ---------------------------------------------------------------------------------

words = st.text(LETTERS, min_size=1, max_size=3)
texts = st.lists(words, max_size=6).map(" ".join)
documents_given = st.lists(st.lists(texts, min_size=1, max_size=3).map("|".join), min_size=1, max_size=8)


class Asked:
    """A search as text, and what it means: a function of the values of a document."""

    def __init__(self, text, means):
        self.text, self.means = text, means

    def __repr__(self):
        return self.text


def has_phrase(values, phrase):
    return any(
        value.split()[start : start + len(phrase)] == phrase
        for value in values
        for start in range(len(value.split()))
    )


def in_parentheses(asked):
    return f"({asked.text})"


atoms = st.one_of(
    words.map(lambda word: Asked(word, lambda values: word in " ".join(values).split())),
    words.map(
        lambda word: Asked(
            f"{word}*", lambda values: any(w.startswith(word) for w in " ".join(values).split())
        )
    ),
    st.lists(words, min_size=1, max_size=3).map(
        lambda phrase: Asked(f'"{" ".join(phrase)}"', lambda values: has_phrase(values, phrase))
    ),
)


def combined(inner):
    return st.one_of(
        st.tuples(st.lists(inner, min_size=1, max_size=3), st.lists(inner, max_size=2)).map(
            lambda parts: Asked(
                " ".join([*map(in_parentheses, parts[0]), *("-" + in_parentheses(one) for one in parts[1])]),
                lambda values: (
                    all(one.means(values) for one in parts[0])
                    and not any(one.means(values) for one in parts[1])
                ),
            )
        ),
        st.lists(inner, min_size=2, max_size=3).map(
            lambda parts: Asked(
                " OR ".join(map(in_parentheses, parts)),
                lambda values: any(one.means(values) for one in parts),
            )
        ),
    )


searches = st.recursive(atoms, combined, max_leaves=6)


@given(documents_given, st.lists(searches, min_size=1, max_size=12))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_files_tail_and_test_find_what_a_search_means(tmp_path_factory, documents, asked):
    reader = written(tmp_path_factory.mktemp("index"), documents)
    tail = TYPE.open_tail({})
    tail.add([IndexDocument(n, (f"{n}",), text.split("|")) for n, text in enumerate(documents)])
    for one in asked:
        meant = [n for n, text in enumerate(documents) if one.means(text.split("|"))]
        predicate = compiled(one.text)
        assert found(reader, one.text) == meant
        assert found(tail.reader(), one.text) == meant
        assert [n for n, text in enumerate(documents) if predicate.test_all(text.split("|"))] == meant
        assert sorted(number for number, _ in predicate.best({"fulltext": reader}, 100)) == meant
        assert predicate.estimate({"fulltext": reader}) >= len(meant)


@given(st.text(max_size=40) | st.text('ab"()-* ORAND', max_size=40), st.text(max_size=60))
@settings(max_examples=400, deadline=None)
def test_whatever_is_typed_is_a_search_or_is_refused_with_its_place(asked, text):
    try:
        predicate = compiled(asked)
    except InvalidInput as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert refused.details["field"] == "value"
        assert 0 <= refused.details["position"] <= len(asked)
        return
    assert predicate.test(text) in (None, 1.0)
    ranges = predicate.matches(text)
    assert all(0 <= start < end <= len(text) for start, end in ranges)
    assert all(before[1] <= behind[0] for before, behind in pairwise(ranges))


@given(st.text(st.characters(exclude_characters='"\x1c\x1d\x1e\x1f'), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_part_of_a_text_in_any_script_finds_it(tmp_path_factory, text):
    for options in ({}, {"tokenizer": "cjk"}, {"language": "russian"}, {"tokenizer": "whitespace"}):
        reader = written(tmp_path_factory.mktemp("index"), [text.replace("|", "/"), ""], **options)
        for part in text.replace("|", "/").split():
            # What has no letters or digits asks nothing, and finds nothing anywhere.
            wanted = [0] if compiled(f'"{part}"', **options).matches(part) else []
            assert found(reader, f'"{part}"', **options) == wanted, (part, options)
            assert (compiled(f'"{part}"', **options).test(text) is not None) == bool(wanted)


# -- examples --------------------------------------------------------------------------------------


def test_words_phrases_and_what_must_not_be_there(tmp_path):
    reader = written(
        tmp_path / "i",
        ["War and Peace", "peace, not war", "Anna Karenina", "The Überall of wars|peace", "Peaceful"],
    )
    assert found(reader, "war peace") == [0, 1]
    assert found(reader, "WAR AND peace") == [0, 1]
    assert found(reader, '"war and peace"') == [0]
    assert found(reader, "peace -war") == [3]
    assert found(reader, 'peace -"not war" -wars') == [0]
    assert found(reader, "anna OR wars") == [2, 3]
    assert found(reader, "(anna OR wars) peace") == [3]
    assert found(reader, "peace*") == [0, 1, 3, 4]
    assert found(reader, "uberall") == found(reader, "ÜBERALL") == [3]
    assert found(reader, "u\u0308berall") == [3]
    assert found(reader, '"wars peace"') == []
    assert found(reader, "text:war") == found(reader, "id:[0 TO 9]") == []
    assert found(reader, "???") == []


def test_stems_and_stop_words(tmp_path):
    options = {"language": "english", "stop_words": True}
    reader = written(
        tmp_path / "i", ["The foxes were jumping", "a fox jumps", "relational algebra"], **options
    )
    assert found(reader, "jumped foxes", **options) == [0, 1]
    assert found(reader, "the fox", **options) == [0, 1]
    assert found(reader, "the", **options) == []
    assert found(reader, "relation*", **options) == [2]
    predicate = compiled("jumped the fox", **options)
    assert predicate.matches("The foxes were jumping") == [(4, 9), (15, 22)]


def test_a_script_without_spaces(tmp_path):
    options = {"tokenizer": "cjk"}
    reader = written(tmp_path / "i", ["東京都に住む", "京都の寺", "python で東京"], **options)
    assert found(reader, "東京", **options) == [0, 2]
    assert found(reader, "京都", **options) == [0, 1]
    assert found(reader, "東京都", **options) == [0]
    assert found(reader, "寺", **options) == [1]
    assert found(reader, "住む python OR 京都の", **options) == [1]
    assert compiled("東京都", **options).matches("xx 東京都に") == [(3, 6)]


def test_places_are_those_of_the_text_that_was_given():
    assert compiled('resume "b c"').matches("x re\u0301sume\u0301 b-C B") == [(2, 10), (11, 14)]
    assert compiled("a OR b*").matches("a bee\ud800b") == [(0, 1), (2, 5), (6, 7)]
    assert compiled("-a b").matches("a b") == [(2, 3)]


@pytest.mark.parametrize(
    ("asked", "position"),
    [
        ('fox "jumps', 4), ("fox (jumps", 4), ("fox) jumps", 3), ("fox OR", 6), ("OR fox", 0), ("AND fox", 0),
        ("fox AND", 4), ("-fox", 0), ("fox ()", 5), ("", 0), ("   ", 3), ("(" * 40 + "a" + ")" * 40, 16),
        ("a " * 200, 400), ("x" * 5_000, 4_096),
    ],
)  # fmt: skip
def test_what_can_not_be_read_is_refused_at_its_place(asked, position):
    with pytest.raises(InvalidInput) as refused:
        compiled(asked)
    assert refused.value.details["position"] == position


def test_scores_grow_with_those_of_the_library_and_end_at_one():
    scores = [score_of(bm25) for bm25 in (0, 0.1, 1, 8, 30, 1e6)]
    assert scores == sorted(scores)
    assert 0 < scores[0] < scores[-1] <= 1
    assert score_of(8) == 0.5


def test_the_rarer_word_and_the_shorter_text_are_better(tmp_path):
    reader = written(
        tmp_path / "i", ["common " * 9, "common rare", *["common"] * 30, "rare " + "common " * 40]
    )
    best = compiled("common OR rare").best({"fulltext": reader}, 2)
    assert [number for number, _ in best] == [1, 32]
    assert best[0][1] > best[1][1]


def test_long_lists_are_made_in_parts(tmp_path, monkeypatch):
    reader = written(tmp_path / "i", ["common rare" if n % 3 == 0 else "common" for n in range(500)])
    whole = dict(compiled("common -rare").best({"fulltext": reader}, 1_000))
    monkeypatch.setattr(reading, "_LISTED_AT_ONCE", 37)
    monkeypatch.setattr(reading, "_NAMED_AT_MOST", 10)
    assert found(reader, "common -rare") == sorted(whole) == [n for n in range(500) if n % 3]
    some = BitMap(range(0, 500, 5))
    scores = compiled("common -rare").scores({"fulltext": reader}, some)
    assert scores == pytest.approx({number: whole[number] for number in some if number in whole})


# -- files -----------------------------------------------------------------------------------------

READING = """
import sys
from pathlib import Path
from svc_index_fulltext import reading
from svc_index_fulltext.index_type import FulltextIndexType
from svc_index_fulltext.operator import SearchOperator
from svc_query.api import Leaf
kind = FulltextIndexType()
search = SearchOperator().compile(Leaf(field="x", op="search", value="word"))
for line in sys.stdin:
    count, state = line.split()
    reader = kind.open_reader(Path(sys.argv[1]), kind.normalize({}), bytes.fromhex(state))
    assert len(search.candidates({"fulltext": reader})) == int(count), (count, state)
    print(count, flush=True)
"""


def test_another_process_reads_each_state_while_this_one_writes(tmp_path):
    known = TYPE.normalize({})
    with subprocess.Popen(
        [sys.executable, "-c", READING, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        state = None
        for turn in range(30):
            writer = TYPE.open_writer(tmp_path, known, state)
            writer.add([IndexDocument(turn * 20 + n, ("x",), ["word"]) for n in range(20)])
            state = writer.flush(BitMap())
            process.stdin.write(f"{turn * 20 + 20} {state.hex()}\n")
            process.stdin.flush()
            writer.close()
            assert process.stdout.readline().strip() == str(turn * 20 + 20)
        process.stdin.close()
        assert process.wait(timeout=30) == 0


WRITING = """
import sys
from pathlib import Path
from pyroaring import BitMap
from svc_index_fulltext.index_type import FulltextIndexType
from svc_query.api import IndexDocument
kind = FulltextIndexType()
known = kind.normalize({})
state = bytes.fromhex(sys.argv[2]) if sys.argv[2] else None
first = int(sys.argv[3])
while True:
    writer = kind.open_writer(Path(sys.argv[1]), known, state)
    for _ in range(3):
        writer.add([IndexDocument(first + n, ("x",), [f"word w{first + n}"]) for n in range(300)])
        first += 300
        state = writer.flush(BitMap(range(0, first, 3)))
        print(first, state.hex(), flush=True)
        sys.stdin.readline()
    writer.close()
"""


def test_a_writer_that_is_killed_leaves_a_state_to_go_on_from(tmp_path):
    known, state, first = TYPE.normalize({}), "", 0
    for turn in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITING, str(tmp_path), state, str(first)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            for _ in range(2 + turn):
                shown, state = process.stdout.readline().split()
                process.stdin.write("counts\n")
                process.stdin.flush()
            first = int(shown)
            # It is somewhere in the next flush, or behind it, at a state that does not count.
            time.sleep(0.008 * turn)
            process.kill()
        reader = TYPE.open_reader(tmp_path, known, bytes.fromhex(state))
        living = set(range(first)) - set(range(0, first, 3))
        assert living <= set(found(reader, "word"))
        assert found(reader, f"w{first - 2}") == [first - 2]
        assert found(reader, f"w{first}") == []


def test_dead_documents_go_and_files_with_them(tmp_path):
    known = TYPE.normalize({})
    dead, state, sizes = BitMap(), None, []
    for turn in range(24):
        writer = TYPE.open_writer(tmp_path, known, state)
        numbers = range(turn * 1500, turn * 1500 + 1500)
        writer.add([IndexDocument(n, ("x",), [f"word{n} common"]) for n in numbers])
        state = writer.flush(dead)
        writer.close()
        dead |= BitMap(numbers)
        reader = TYPE.open_reader(tmp_path, known, state)
        assert set(numbers) <= set(found(reader, "common"))
        sizes.append(reader.count)
    assert max(sizes) <= 4 * 1500
    assert sum(1 for _ in tmp_path.rglob("*")) < 600


def test_damage_is_told(tmp_path):
    known = TYPE.normalize({})
    writer = TYPE.open_writer(tmp_path, known, None)
    state = writer.flush(BitMap())
    writer.close()
    with pytest.raises(CorruptRecord):
        TYPE.open_reader(tmp_path, known, b"nonsense")
    next((tmp_path / "states").glob("*/meta.json")).write_text("{")
    with pytest.raises(CorruptRecord):
        TYPE.open_reader(tmp_path, known, state)
