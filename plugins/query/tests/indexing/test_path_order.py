"""Documents in the order of their paths: where numbers follow it, where they don't, and in the tail."""

from __future__ import annotations

from random import Random

import pytest
from pyroaring import BitMap
from svc_query.indexing import working


def fill(indexed, random):
    """Files that are flushed in the order of their paths, some that are not, and some in the tail."""
    names = [f"d{number % 7}/n{number}" for number in range(300)] + ["d3", "d3x/n", "d"]
    indexed.put({f"/a/{name}": {"n": 1} for name in names if "/" in name})
    indexed.finish()
    assert indexed.read(lambda snapshot: snapshot.is_numbered_by_path)
    changed = random.sample(names, 40)
    for some in (sorted(changed)[20:], sorted(changed)[:20]):
        indexed.put({f"/a/{name}": {"n": 2} for name in some if "/" in name})
        indexed.read(lambda snapshot: None)
    indexed.finish()
    indexed.put({f"/a/e{number}": {"n": 3} for number in (5, 1, 3)})
    indexed.put({"/a/d1/n1": {"n": 4}, "/a/d2/n2": None})


@pytest.mark.parametrize("reverse", [False, True])
def test_some_documents_come_in_path_order_from_anywhere(indexed, reverse, monkeypatch):
    monkeypatch.setattr(working, "QUIET_FLUSH_DOCUMENTS", 1)
    random = Random(4)
    fill(indexed, random)

    def look(snapshot):
        known = {number: path for path, number in snapshot.in_path_order(())}
        assert len(known) > 290
        index = snapshot.path_index()
        assert index.ascending, "what a job wrote is numbered by path"
        assert index.others.segments, "what changed later is not"
        assert snapshot.tail(), "the last ones wait"
        every = sorted(known.values())
        for where in ((), ("a",), ("a", "d3"), ("a", "d1", "n1"), ("b",)):
            for after in (None, *random.sample(every, 12), ("a",), ("a", "d3"), ("zz",)):
                some = BitMap(random.sample(sorted(known), random.choice((3, 60, 250))))
                found = snapshot.in_path_order(where, after=after, reverse=reverse, among=some)
                expected = [
                    (path, number)
                    for number, path in known.items()
                    if number in some
                    and path[: len(where)] == where
                    and (after is None or (path < after if reverse else after < path))
                ]
                kept = [pair for pair in found if pair[1] in some]
                assert kept == sorted(expected, reverse=reverse)

    indexed.read(look)


def test_queries_of_one_moment_share_what_they_opened(indexed):
    indexed.configure("/d", {"name": "n", "type": "exact"})
    indexed.put({"/d/a": {"n": "x"}})
    indexed.finish()
    first = indexed.read(lambda snapshot: snapshot.indexes("n"))
    assert indexed.read(lambda snapshot: snapshot.indexes("n")) is first
    indexed.put({"/d/b": {"n": "y"}})
    second = indexed.read(lambda snapshot: snapshot.indexes("n"))
    assert second is not first
    assert indexed.found("n", b"sy") == {"/d/b"}


def test_a_snapshot_that_is_older_goes_on_with_what_it_opened(indexed):
    indexed.configure("/d", {"name": "n", "type": "exact"})
    indexed.put({f"/d/{number}": {"n": "x"} for number in range(40)})
    indexed.finish()

    def outer(snapshot):
        (index,) = (one for one in snapshot.indexes("n") if one.type.name == "exact")
        indexed.put({f"/d/{number}": {"n": "y"} for number in range(40)})
        indexed.finish()
        assert len(indexed.found("n", b"sy")) == 40
        return len(index.reader.postings(b"sx"))

    assert indexed.read(outer) == 40


def test_a_job_that_has_all_of_anothers_work_before_it_is_enough(indexed, monkeypatch):
    indexed.put({f"/a/{number}": {"n": "x"} for number in range(30)})
    indexed.finish()
    from svc_query.indexing.rows import JobRow

    table = indexed.view._table

    def jobs_after(*rows):
        def add(storage):
            table.begin(storage)
            for _, row in table.jobs():
                assert row is None, "there were none"
            for row in rows:
                table.add_job(row)
            found = [row for _, row in table.jobs()]
            for number, _ in table.jobs():
                table.set_job(number, None)
            table._forget()
            return found

        return in_a_transaction(indexed, add)

    def job(path, position=None, until=0, reads=False):
        return JobRow(path, "tree", 30, 5, position, until=until, reads=reads)

    assert jobs_after(job(""), job("a")) == [job("")]
    assert jobs_after(job("", "A"), job("a")) == [job("", "A")]
    assert jobs_after(job("", "a\x015"), job("a")) == [job("", "a\x015"), job("a")]
    assert jobs_after(job("", "a"), job("a")) == [job("", "a"), job("a")]
    assert jobs_after(job(""), job("a", until=9)) == [job(""), job("a", until=9)]
    assert jobs_after(job(""), job("a", reads=True)) == [job(""), job("a", reads=True)]
    assert jobs_after(job("a"), job("ab")) == [job("a"), job("ab")]
    assert jobs_after(job("a"), job("a\x01b")) == [job("a")]


def in_a_transaction(indexed, function):
    """Calls a function with rows that are forgotten afterwards."""
    found = []

    class Abandoned(Exception):
        pass

    def work(storage, at, should_stop):
        found.append(function(storage))
        raise Abandoned

    view = indexed.view
    view.work = work
    try:
        indexed.reader.work()
    except Abandoned:
        pass
    finally:
        del view.work
    return found[0]
