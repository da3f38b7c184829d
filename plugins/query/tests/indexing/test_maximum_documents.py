"""A directory that one request copies cannot make the index as large as it likes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from svc_query.health import IndexHealth
from svc_query.indexing import applying, index_status, jobs, rebuild, table, working
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
    assert len(indexed.contents()) == 135, "the last tenth is kept for small directories"
    assert held(indexed) == ["/b"]
    report = IndexHealth().check(indexed.context)
    assert report.status is HealthStatus.DEGRADED
    assert report.details["maximum_documents"] == 150
    copy(indexed, "a", "c")
    assert len(indexed.contents()) == 135
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
    assert len(indexed.contents()) == 135
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
    assert len(other.contents()) == 200
    assert held(other) == []


def test_a_bomb_leaves_room_for_the_directories_of_others(indexed: Indexed) -> None:
    copy(indexed, "a", "bomb")
    with indexed.database.transaction() as transaction:
        for number in range(12):
            transaction.put(("small", f"{number}.json"), b"{}", content_type="application/json")
    indexed.finish()
    assert held(indexed) == ["/bomb"]
    found = indexed.contents()
    assert len([path for path in found if path.startswith("/small/")]) == 12


def test_directories_take_turns_while_they_are_indexed(
    open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applying, "LARGE_DIRECTORY", 10)
    monkeypatch.setattr(working, "_TURN_SECONDS", 0.0)
    indexed = open_index()
    indexed.configure("/", TITLE)
    indexed.put({f"/a/{number}.json": {"title": "t"} for number in range(1_000)})
    indexed.put({f"/s/{number}.json": {"title": "t"} for number in range(20)})
    indexed.finish()
    with indexed.database.transaction() as transaction:
        transaction.copy(("a",), ("bomb",))
    with indexed.database.transaction() as transaction:
        transaction.copy(("s",), ("small",))
    indexed.reader.catch_up()

    def count(name: str) -> int:
        return len([path for path in indexed.contents() if path.startswith(f"/{name}/")])

    steps = 0
    while count("small") < 20:
        assert indexed.reader.work(should_stop=lambda: True)
        steps += 1
        assert steps < 1_000
    assert count("bomb") < 1_000


def test_a_job_over_everything_leaves_large_directories_to_jobs_of_their_own(
    open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LARGE_TOP", 50)
    monkeypatch.setattr(working, "_TURN_SECONDS", 0.0)
    indexed = open_index()
    indexed.configure("/", TITLE)
    indexed.put({f"/bomb/{number}.json": {"title": "t"} for number in range(1_000)})
    indexed.put({f"/small/{number}.json": {"title": "t"} for number in range(20)})
    indexed.put({"/zoe.json": {"title": "t"}})
    indexed.finish()
    rebuild(indexed.database, ())
    seen = set()
    while indexed.reader.work(should_stop=lambda: True):
        seen |= {job["path"] for job in indexed.read(index_status)["jobs"]}
    assert seen == {"/", "/bomb"}
    assert len(indexed.contents()) == 1_021


@pytest.fixture
def by_job(open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch) -> Indexed:
    """An index that leaves what one commit changes to a job over everything."""
    monkeypatch.setattr(applying, "MOST_CHANGES", 0)
    indexed = open_index(maximum_documents=200)
    indexed.configure("/", TITLE)
    indexed.finish()
    return indexed


def test_files_beside_a_bomb_are_indexed_by_a_job_over_everything(by_job: Indexed) -> None:
    files = {f"/bomb/{number}.json": {"title": "t"} for number in range(300)}
    files |= {f"/small/{number}.json": {"title": "t"} for number in range(12)}
    by_job.put(files | {f"/{number}.json": {"title": "t"} for number in range(3)})
    by_job.finish()
    found = by_job.contents()
    assert len([path for path in found if path.startswith("/small/")]) == 12
    assert len([path for path in found if path.count("/") == 1]) == 3
    assert held(by_job) == ["/bomb"]
    with by_job.database.transaction() as transaction:
        transaction.delete(("bomb",), recursive=True)
    by_job.finish()
    assert (len(by_job.contents()), held(by_job)) == (15, [])


def test_many_files_in_the_root_leave_room_for_directories(
    by_job: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_MOST_SHARES", 20)
    by_job.put({f"/{number}.json": {"title": "t"} for number in range(300)} | {"/zoe/0.json": {"title": "t"}})
    by_job.finish()
    assert len(by_job.contents()) == 181
    assert "/zoe/0.json" in by_job.contents()
    assert held(by_job) == ["/"]
    with by_job.database.transaction() as transaction:
        for number in range(250):
            transaction.delete((f"{number}.json",))
    by_job.finish()
    assert (len(by_job.contents()), held(by_job)) == (51, [])
