"""A file's date may go back, as by a restore: clients that compare dates still get what is there now."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_testing import Server, start_server

OLD, NEW = 1_600_000_000_000, 1_700_000_000_000
OLD_DATE, NEW_DATE = "Sun, 13 Sep 2020 12:26:40 GMT", "Tue, 14 Nov 2023 22:13:20 GMT"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with start_server(tmp_path_factory.mktemp("dates") / "x.svcdb", plugins=("files",)) as running:
        yield running


def put(server: Server, body: bytes, time_ms: int) -> None:
    headers = {"X-Svc-Updated-At": str(time_ms)}
    assert server.request("PUT", "/files/a", body=body, headers=headers).status in (200, 201)


def test_only_the_very_date_that_was_given_out_is_not_modified(server: Server) -> None:
    put(server, b"old", OLD)
    for date, status in (
        (OLD_DATE, 304),
        (NEW_DATE, 200),
        ("Sun, 13 Sep 2020 12:26:39 GMT", 200),
        ("x", 200),
    ):
        answer = server.request("GET", "/files/a", headers={"If-Modified-Since": date})
        assert answer.status == status, date
    assert server.get("/files/a").headers["last-modified"] == OLD_DATE


@pytest.mark.parametrize("path", ["/files/a", "/files/", "/files/link?nofollow=true", "/links/link"])
def test_whoever_has_a_later_date_gets_the_content_without_one(server: Server, path: str) -> None:
    put(server, b"old", OLD)
    headers = {"Content-Type": "application/json"}
    server.request("PUT", "/links/link", body=b'{"target": "/a"}', headers=headers)
    later = {"If-Modified-Since": "Fri, 31 Dec 2100 00:00:00 GMT"}
    for method in ("GET", "HEAD"):
        answer = server.request(method, path, headers=later)
        assert answer.status == 200
        assert "last-modified" not in answer.headers


@pytest.mark.parametrize(
    "command",
    [
        ("curl", "-sS", "--fail", "-R", "-z", "a", "-o", "a", "{url}"),
        ("wget", "-q", "-N", "{url}"),
    ],
)
def test_a_client_that_compares_dates_gets_what_was_restored(
    server: Server, tmp_path: Path, command: tuple[str, ...]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    put(server, b"new", NEW)
    words = [word.replace("{url}", f"{server.url}/files/a") for word in command]

    def fetch() -> bytes:
        subprocess.run(words, check=True, cwd=tmp_path, timeout=60)
        return (tmp_path / "a").read_bytes()

    assert fetch() == b"new"
    assert fetch() == b"new"
    put(server, b"old", OLD)
    assert fetch() == b"old"
