"""Reads at a time, and how long caches may keep what was read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from svc.plugin import ROOT_IDENTITY

if TYPE_CHECKING:
    from svc.plugin import Identity

FOR_EVER = "private, max-age=31536000, immutable"
REVALIDATE = "private, no-cache"

Clock = Callable[[int], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the time of the commits that follow, in Unix milliseconds."""

    def set_time(time_ms: int) -> None:
        monkeypatch.setattr("time.time_ns", lambda: time_ms * 1_000_000)

    return set_time


LATER = 4_000_000_000_000  # After the commits that made the database.


@pytest.fixture
def history(http: Any, clock: Clock) -> list[str]:
    """Three commits a minute apart; the last one deletes. Returns their versions."""
    clock(LATER)
    http.put("/files/a.txt", "first")
    http.put("/files/kept.txt", "kept")
    versions = [http.get("/files/").headers["X-Svc-Version"]]
    clock(LATER + 60_000)
    versions.append(http.put("/files/a.txt", "second").json["version"])
    clock(LATER + 120_000)
    versions.append(http.delete("/files/a.txt").json["version"])
    return versions


def _iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()


def test_a_file_is_read_as_it_was_at_a_time(http: Any, history: list[str]) -> None:
    for offset, content in ((0, "first"), (59_999, "first"), (60_000, "second"), (119_999, "second")):
        for at in (str(LATER + offset), _iso(LATER + offset)):
            answer = http.get("/files/a.txt", params={"at": at})
            assert (answer.status_code, answer.text) == (200, content), at
    assert http.get("/files/a.txt", params={"at": str(LATER + 120_000)}).status_code == 404
    assert http.get("/files/kept.txt", params={"at": "2999-01-01"}).text == "kept"


def test_an_offset_that_was_not_encoded_is_understood(http: Any, history: list[str]) -> None:
    at = "2096-10-02T09:06:40+02:00"  # "+" means a space in a query.
    assert http.get("/files/a.txt", query_string=f"at={at}").text == "first"
    assert http.get("/files/a.txt", params={"at": at}).text == "first"


def test_every_read_takes_a_time(http: Any, history: list[str]) -> None:
    at = {"at": str(LATER + 60_000)}
    assert http.items("/files/", params=at) == ["/a.txt", "/kept.txt"]
    assert http.items("/files/", params={**at, "depth": -1, "glob": "a*"}) == ["/a.txt"]
    fetched = http.post("/files/fetch", {"paths": ["/a.txt"]}, params=at).json
    assert (fetched["items"][0]["content"], fetched["version"]) == ("second", history[1])
    archive = http.post("/files/download", {"paths": ["/a.txt"]}, params=at)
    assert (archive.status_code, archive.headers["X-Svc-Version"]) == (200, history[1])
    assert http.get("/engine/a.txt", params=at).headers["X-Svc-Version"] == history[1]


def test_a_named_version_wins_over_a_time(http: Any, history: list[str]) -> None:
    answer = http.get("/files/a.txt", params={"at": str(LATER), "version": history[1]})
    assert answer.text == "second"
    http.database.transaction()
    with http.database.transaction() as transaction:
        transaction.set_ref("forks/draft", bytes.fromhex(history[1]))
    assert http.get("/files/a.txt", params={"at": str(LATER), "fork": "draft"}).text == "second"


@pytest.mark.parametrize("at", ["yesterday", "2026-13-01", "", "-1", "9" * 40])
def test_what_is_no_time_is_refused(http: Any, history: list[str], at: str) -> None:
    answer = http.get("/files/kept.txt", params={"at": at})
    assert (answer.status_code, answer.json["code"]) == (400, "INVALID_INPUT")


def test_before_the_first_commit_there_is_nothing(http: Any, history: list[str]) -> None:
    answer = http.get("/files/kept.txt", params={"at": "1"})
    assert (answer.status_code, answer.json["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_nothing_is_written_at_a_time(http: Any, history: list[str], method: str) -> None:
    options: dict[str, Any] = {"body": b'{"to": "/b"}', "headers": {"Content-Type": "application/json"}}
    answer = http(method, "/files/kept.txt", params={"at": str(LATER)}, **options)
    assert (answer.status_code, answer.json["field"]) == (400, "at")


def test_the_list_of_deleted_files_is_of_now(http: Any, history: list[str]) -> None:
    answer = http.get("/files/", params={"deleted": "true", "at": str(LATER)})
    assert (answer.status_code, answer.json["field"]) == (400, "at")


def test_what_was_deleted_since_needs_the_permission_at_a_time_too(
    http: Any, history: list[str], make_user: Callable[..., Identity]
) -> None:
    at = {"at": str(LATER)}
    http.become(make_user({"/": "rl"}))
    assert http.get("/files/kept.txt", params=at).status_code == 200
    assert http.get("/files/a.txt", params=at).status_code == 404
    assert http.items("/files/", params=at) == ["/kept.txt"]
    http.become(make_user({"/": "rld"}))
    assert http.get("/files/a.txt", params=at).text == "first"


@pytest.fixture
def make_user() -> Callable[..., Identity]:
    from svc.plugin import Identity
    from svc_testing import PathRights

    return lambda flags: Identity("00000000-0000-0000-0000-000000000009", "ann", rights=PathRights(flags))


def test_what_a_hash_names_is_kept_for_ever(http: Any, history: list[str]) -> None:
    answer = http.get("/files/a.txt", params={"version": history[0]})
    assert answer.headers["Cache-Control"] == FOR_EVER
    assert answer.headers["Vary"] == "Authorization", "one cache may serve several callers"
    assert answer.headers["ETag"].startswith('"')
    described = http.get("/files/a.txt", params={"version": history[0], "nofollow": "true"})
    assert described.headers["Cache-Control"] == FOR_EVER


def test_a_copy_that_is_asked_for_all_the_same_costs_a_304(http: Any, history: list[str]) -> None:
    version = {"version": history[0]}
    etag = http.get("/files/a.txt", params=version).headers["ETag"]
    again = http.get("/files/a.txt", params=version, headers={"If-None-Match": etag})
    assert (again.status_code, again.headers["Cache-Control"]) == (304, FOR_EVER)
    part = http.get("/files/a.txt", params=version, headers={"Range": "bytes=0-1"})
    assert (part.status_code, part.headers["Cache-Control"]) == (206, FOR_EVER)


def test_names_that_can_move_are_asked_for_again(http: Any, history: list[str]) -> None:
    with http.database.transaction() as transaction:
        transaction.set_ref("snapshots/first", bytes.fromhex(history[0]))
        transaction.set_ref("forks/draft", bytes.fromhex(history[0]))
    for query in ({}, {"snapshot": "first"}, {"fork": "draft"}, {"at": str(LATER)}):
        answer = http.get("/files/kept.txt", params=query)
        assert answer.headers["Cache-Control"] == REVALIDATE, query
    both = http.get("/files/kept.txt", params={"snapshot": "first", "version": history[1]})
    assert both.headers["Cache-Control"] == REVALIDATE, "the snapshot is what was read"


def test_errors_are_not_kept(http: Any, history: list[str]) -> None:
    version = {"version": history[0]}
    for path, headers in (
        ("/files/none", {}),
        ("/files/a.txt", {"If-Match": '"x"'}),
        ("/files/a.txt", {"Range": "bytes=99-"}),
    ):
        answer = http.get(path, params=version, headers=headers)
        assert answer.status_code in (404, 412, 416)
        assert "immutable" not in answer.headers.get("Cache-Control", ""), path


def test_a_listing_is_kept_only_by_who_sees_everything(
    http: Any, history: list[str], make_user: Callable[..., Identity]
) -> None:
    version = {"version": history[0]}
    assert http.get("/files/", params=version).headers["Cache-Control"] == FOR_EVER
    http.become(make_user({"/": "rl"}))
    assert http.get("/files/", params=version).headers["Cache-Control"] == REVALIDATE
    assert http.get("/files/kept.txt", params=version).headers["Cache-Control"] == FOR_EVER
    http.become(ROOT_IDENTITY)
