"""Several processes on one log, killed at the worst moments."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from svc.hashing import ObjectKind, hash_object
from svc.log import LocalFileStorage, Log, encode_record

WORKER = Path(__file__).with_name("worker.py")


def start(*arguments):
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)


def lines_of(process):
    """The whole lines that a process said before it ended."""
    with process:
        said = process.stdout.read()
    return [line.rstrip("\n") for line in said.splitlines(keepends=True) if line.endswith("\n")]


def check(log, acknowledged):
    for line in acknowledged:
        offset, content = line.split(" ")
        assert log.read_payload(int(offset), len(content)) == content.encode()


def test_processes_append_at_once_while_some_are_killed(path, log):
    steady = [start("append", path, name, 150) for name in ("a", "b")]
    doomed = [start("append", path, name, 10**6) for name in ("c", "d")]
    said = []
    for process in doomed:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.02)
        process.kill()
        said += [line for line in lines_of(process) if line != "ready"]
    for process in steady:
        lines = lines_of(process)
        assert process.returncode == 0
        assert len(lines) == 151
        said += lines[1:]
    # The first append afterwards deals with what the killed left behind.
    log.append(())
    check(log, said)
    found = sum(1 for _ in log.scan(verify=True))
    assert log.tail == path.stat().st_size
    assert found >= 3 * len(said)
    # A write that a kill broke off is saved as what nobody was told of, and as nothing else.
    assert all(saved.suffix == ".unfinished" for saved in path.parent.glob("*.cut-*"))


@pytest.mark.parametrize("moment", ["before", "within", "after"])
def test_whatever_step_a_process_dies_at_every_acknowledged_commit_is_there(path, moment):
    for step in range(1, 20):
        path.unlink(missing_ok=True)
        process = start("die_while_committing", path, step, moment)
        lines = lines_of(process)
        finished = "done" in lines
        assert (process.returncode == 0) == finished
        acknowledged = [line.split(" ") for line in lines if line != "done"]
        if path.exists():
            with Log(LocalFileStorage.open(path, timeout=0)) as log:
                recovery = log.recover()
                assert recovery.damaged == ()
                commits = [item for item in log.scan(payloads=True) if item.kind is ObjectKind.COMMIT]
                numbers = [int(item.payload) for item in commits]
                assert numbers == list(range(len(numbers)))
                assert len(numbers) in (len(acknowledged), len(acknowledged) + 1)
                offset = log.append([commit(b"next")])
                assert log.read_payload(offset, 4) == b"next"
        else:
            assert acknowledged == []
        if finished:
            return
    pytest.fail("the worker never came to its end")


def commit(content):
    return encode_record(ObjectKind.COMMIT, hash_object(ObjectKind.COMMIT, content), content, time_ms=1)


def test_locks_hold_between_greenlets_and_native_threads(path):
    process = start("native_locks", path)
    assert lines_of(process) == ["well"]
