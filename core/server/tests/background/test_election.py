"""One background process for each database: elected by a lock that ends with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc.database import Database
from svc.errors import DatabaseNotFound
from svc_cli.processes.election import Candidate, is_elected

HOLDER = """
import sys, time
from svc_cli.processes.election import Candidate
assert Candidate(sys.argv[1]).acquire()
print("elected", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Database(tmp_path / "x.svcdb").close()
    return tmp_path / "x.svcdb"


def test_one_candidate_is_elected_and_the_next_when_it_resigns(path: Path) -> None:
    assert not is_elected(path)
    with Candidate(path) as first, Candidate(path) as second:
        assert first.acquire()
        assert first.acquire()
        assert not second.acquire()
        assert is_elected(path)
        first.close()
        assert second.acquire()
    assert not is_elected(path)


def test_asking_who_is_elected_keeps_nobody_from_it(path: Path) -> None:
    path.chmod(0o444)
    assert not is_elected(path)
    assert not is_elected(path.with_name("missing.svcdb"))
    path.chmod(0o644)
    with Candidate(path) as candidate:
        assert candidate.acquire()


def test_the_lease_is_free_when_its_holder_is_killed(path: Path, eventually: Callable[..., Any]) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"elected\n"
        with Candidate(path) as candidate:
            assert not candidate.acquire()
            os.kill(holder.pid, signal.SIGKILL)
            eventually(candidate.acquire)


def test_the_election_survives_the_removal_of_what_lies_beside_the_log(path: Path) -> None:
    with Candidate(path) as first, Candidate(path) as second:
        assert first.acquire()
        for file in sorted((path.with_name("x.svcdb.d")).rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        assert not second.acquire()


def test_a_database_that_was_replaced_makes_the_lease_worthless(path: Path) -> None:
    with Candidate(path) as candidate:
        assert candidate.acquire()
        assert not candidate.is_outdated
        copy = path.with_name("copy.svcdb")
        copy.write_bytes(path.read_bytes())
        copy.rename(path)
        assert candidate.is_outdated
        with Candidate(path) as successor:
            assert successor.acquire()
        path.unlink()
        assert candidate.is_outdated


def test_a_database_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(DatabaseNotFound):
        Candidate(tmp_path / "missing.svcdb")
