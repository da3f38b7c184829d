"""``--at``: the reading commands at whatever names a version."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from svc.plugin import Database
from svc_client import ReadAt
from svc_files.client.remote import places_of_name


def test_the_commands_read_at_a_hash_and_at_a_time(run: Any, database: str, tmp_path: Path) -> None:
    first = run("put", "-", "/at/a.txt", "-D", database, "--json", stdin=b"first").json["version"]
    time.sleep(0.01)
    between = str(int(time.time() * 1000))
    time.sleep(0.01)
    run("put", "-", "/at/a.txt", "-D", database, stdin=b"second")
    run("put", "-", "/at/b.txt", "-D", database, stdin=b"new")
    for at in (first, between):
        assert run("cat", "/at/a.txt", "-D", database, "--at", at).out == b"first"
        assert run("ls", "/at", "-D", database, "--at", at).text.split() == ["a.txt"]
        run("dump", tmp_path / at, "/at", "-D", database, "--at", at)
        assert [path.name for path in (tmp_path / at).iterdir()] == ["a.txt"]
        run("get", "/at/a.txt", tmp_path / f"{at}.txt", "-D", database, "--at", at)
        assert (tmp_path / f"{at}.txt").read_bytes() == b"first"
    assert run("cat", "/at/a.txt", "-D", database, "--at", "HEAD").out == b"second"
    assert run("cat", "/at/a.txt", "-D", database, "--at", "2999-01-01").out == b"second"


@pytest.mark.parametrize("at", ["nothing", "1970-01-02", "0" * 64, "forks/none"])
def test_what_names_nothing_ends_with_3(run: Any, database: str, at: str) -> None:
    run("put", "-", "/at/a.txt", "-D", database, stdin=b"x")
    run("ls", "/", "-D", database, "--at", at, check=3)


def test_a_snapshot_and_a_fork_are_found_by_name(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.svcdb"
    version = run("put", "-", "/a.txt", "-D", path, "--json", stdin=b"old").json["version"]
    with Database(path) as database, database.transaction() as transaction:
        transaction.set_ref("snapshots/2020-01-01", bytes.fromhex(version))
        transaction.set_ref("forks/draft", bytes.fromhex(version))
    run("put", "-", "/a.txt", "-D", path, stdin=b"new")
    for at in ("2020-01-01", "snapshots/2020-01-01", "forks/draft"):
        assert run("cat", "/a.txt", "-D", path, "--at", at).out == b"old"
    assert run("cat", "/a.txt", "-D", path, "--at", "HEAD", "--version", version).out == b"old"


def test_a_server_is_asked_in_the_order_in_which_a_file_is() -> None:
    assert places_of_name("HEAD") == [ReadAt()]
    assert places_of_name("ab" * 32) == [ReadAt(version="ab" * 32)]
    assert places_of_name("forks/x/y") == [ReadAt(fork="x/y"), ReadAt(snapshot="forks/x/y")]
    assert places_of_name("snapshots/x") == [ReadAt(snapshot="x"), ReadAt(snapshot="snapshots/x")]
    assert places_of_name("1970-01-01") == [ReadAt(snapshot="1970-01-01"), ReadAt(at="0")]
