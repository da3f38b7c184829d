"""A directory that one request copies cannot make the index as large as it likes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from svc_query.health import IndexHealth
from svc_query.indexing import applying, index_status
from svc_query.testing.indexed_database import Indexed

from svc.plugin import HealthStatus

TITLE = {"name": "title", "type": "exact"}


@pytest.fixture
def indexed(open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch) -> Indexed:
    monkeypatch.setattr(applying, "LARGE_DIRECTORY", 10)
    indexed = open_index(maximum_documents=150)
    indexed.configure("/", TITLE)
    indexed.put({f"/a/{number}.json": {"title": f"t{number}"} for number in range(100)})
    indexed.finish()
    return indexed


def copy(indexed: Indexed, source: str, destination: str) -> None:
    with indexed.database.transaction() as transaction:
        transaction.copy((source,), (destination,))
    indexed.finish()


def held(indexed: Indexed) -> list[str]:
    return [job["path"] for job in indexed.read(index_status)["jobs"] if job["waits_for_room"]]


def test_what_is_beyond_waits_and_is_told(indexed: Indexed) -> None:
    assert IndexHealth().check(indexed.context).status is HealthStatus.HEALTHY
    copy(indexed, "a", "b")
    assert len(indexed.contents()) == 150
    assert held(indexed) == ["/b"]
    report = IndexHealth().check(indexed.context)
    assert report.status is HealthStatus.DEGRADED
    assert report.details["maximum_documents"] == 150
    copy(indexed, "a", "c")
    assert len(indexed.contents()) == 150
    indexed.put({"/a/0.json": {"title": "changed"}, "/one.json": {"title": "more"}})
    indexed.finish()
    assert indexed.contents()["/a/0.json"]["title"] == ["changed"]
    assert indexed.contents()["/one.json"]["title"] == ["more"]


def test_it_goes_on_when_there_is_room(indexed: Indexed) -> None:
    copy(indexed, "a", "b")
    copy(indexed, "a", "c")
    with indexed.database.transaction() as transaction:
        transaction.delete(("a",), recursive=True)
    indexed.finish()
    assert len(indexed.contents()) == 150
    assert held(indexed) == ["/c"]
    with indexed.database.transaction() as transaction:
        transaction.delete(("c",), recursive=True)
    indexed.finish()
    assert held(indexed) == []
    assert {path for path in indexed.contents() if path.startswith("/b/")} == {
        f"/b/{n}.json" for n in range(100)
    }
    assert IndexHealth().check(indexed.context).status is HealthStatus.HEALTHY


def test_a_higher_limit_makes_room(indexed: Indexed, open_index: Callable[..., Indexed]) -> None:
    copy(indexed, "a", "b")
    other = open_index(maximum_documents=1_000)
    other.finish()
    assert len(other.contents()) == 201
    assert held(other) == []
