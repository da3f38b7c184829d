"""The view follows commits: what it holds is what stands in the tree."""

from __future__ import annotations

import pytest
from svc_query.indexing import applying, working
from svc_query.testing.indexed_database import Indexed, contents_of, paths


def test_a_file_is_a_document_at_once(indexed: Indexed) -> None:
    indexed.put({"/a.json": {"title": "One"}})
    assert indexed.read(paths) == ["/a.json"]


def test_values_of_fields_are_found_where_a_configuration_asks_for_them(indexed: Indexed) -> None:
    indexed.configure(
        "/books",
        {"name": "title", "type": "exact"},
        {"name": "year", "type": "exact", "value_type": "integer"},
        {"name": "tags", "type": "exact", "source": ["tags", ""]},
    )
    indexed.put(
        {
            "/books/a.json": {"title": "A", "year": "1999", "tags": ["x", "y"]},
            "/books/b.json": {"title": None, "year": "never"},
            "/c.json": {"title": "C"},
        }
    )
    found = indexed.contents()
    assert found["/books/a.json"]["title"] == ["A"]
    assert found["/books/a.json"]["year"] == [1999]
    assert found["/books/a.json"]["tags"] == ["x", "y"]
    assert found["/books/b.json"]["title"] == [None]
    assert "year" not in found["/books/b.json"]
    assert "title" not in found["/c.json"]


def test_a_flush_takes_the_tail_into_the_files(indexed: Indexed) -> None:
    indexed.configure("/", {"name": "title", "type": ["exact", "names"]}, {"name": "@size", "type": "exact"})
    indexed.put({f"/{number}.json": {"title": f"t{number % 10}"} for number in range(300)})
    before = indexed.contents()
    assert indexed.read(lambda snapshot: len(snapshot.tail())) == 300
    indexed.finish()
    assert indexed.read(lambda snapshot: len(snapshot.tail())) == 0
    assert indexed.contents() == before
    assert len(indexed.found("title", b"st3")) == 30
    indexed.put({"/3.json": {"title": "other"}, "/13.json": None})
    assert len(indexed.found("title", b"st3")) == 28
    assert "/3.json" in indexed.contents()


@pytest.mark.parametrize("job", [False, True])
def test_what_came_at_once_is_flushed_without_a_quiet_second(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, job: bool
) -> None:
    monkeypatch.setattr(applying, "LARGE_DIRECTORY", 100 if job else 2_000)
    monkeypatch.setattr(working, "QUIET_SECONDS", 3_600.0)
    indexed.put({f"/d/{number}.json": {} for number in range(300)})
    indexed.reader.catch_up()
    for _ in range(1_000):
        if not indexed.reader.work():
            break
    assert indexed.read(lambda snapshot: (snapshot.count_below(()), len(snapshot.tail()))) == (300, 0)
    indexed.put({f"/e/{number}.json": {} for number in range(100)})
    indexed.reader.catch_up()
    indexed.reader.work()
    assert indexed.read(lambda snapshot: len(snapshot.tail())) == 100
    monkeypatch.setattr(working, "QUIET_SECONDS", 0.0)
    for _ in range(1_000):
        if not indexed.reader.work():
            break
    assert indexed.read(lambda snapshot: len(snapshot.tail())) == 0


def test_rebuilding_gives_the_same(indexed: Indexed) -> None:
    indexed.configure("/", {"name": "title", "type": "exact"})
    indexed.put({f"/d/{number}.json": {"title": f"t{number % 10}"} for number in range(50)})
    with indexed.database.transaction() as transaction:
        transaction.move(("d",), ("e",))
        transaction.copy(("e", "1.json"), ("f.json",))
        transaction.link(("link",), "/f.json")
    before = indexed.contents()
    assert "/link" not in before
    assert "/e/1.json" in before
    indexed.reader.rebuild()
    indexed.finish()
    assert indexed.contents() == before
    assert indexed.read(contents_of) == before
