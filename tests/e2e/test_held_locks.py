"""A stopped process holds the lock of commits: whoever waits for it says so, and every diagnosis does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from svc_blackbox.client import Client, Response
from svc_blackbox.server import Server, run_svc, svc_environment, svc_program

WITHIN_S = 60.0
HOLDER = """
import sys
from svc import Database
with Database(sys.argv[1]) as database, database.objects.log.commit_lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def stopped_holder(database: Path) -> Iterator[int]:
    """Inside the block a stopped process holds the lock; at the end it goes on, and ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        os.kill(holder.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
        try:
            yield holder.pid
        finally:
            os.kill(holder.pid, signal.SIGCONT)


def status(database: Path) -> tuple[int, dict[str, str]]:
    done = run_svc("status", "-D", database, "--json", check=False)
    found = json.loads(done.stdout)["findings"]
    return done.returncode, {item["code"]: item["detail"] for item in found}


def test_a_command_says_for_whom_it_waits_and_status_who_holds_up_all(tmp_path: Path) -> None:
    database, source = tmp_path / "x.svcdb", tmp_path / "source"
    source.write_bytes(b"late")
    run_svc("put", "-D", database, source, "/first")
    with stopped_holder(database) as pid:
        code, found = status(database)
        assert code == 9
        assert found["database.locked"] == f"It is the process {pid}, which is stopped."
        assert b"database.locked" in run_svc("plugins", "doctor", "-D", database, check=False).stdout
        command = [svc_program(), "put", "-D", str(database), str(source), "/late"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=svc_environment()) as waiting:
            assert waiting.stderr is not None
            said = waiting.stderr.readline().decode()
            assert f"waiting since 5 seconds for a lock of the process {pid}, which is stopped" in said
            assert waiting.poll() is None
            os.kill(pid, signal.SIGKILL)
            assert waiting.stderr.read() == b"", "it is said once"
            assert waiting.wait() == 0
    assert "database.locked" not in status(database)[1]
    assert run_svc("cat", "-D", database, "/late").stdout == b"late"


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_server_tells_that_writes_wait_and_does_them_when_they_may(
    new_server: Callable[..., Server],
) -> None:
    server = new_server("held", "--workers", "1", "--background", "false")
    client, answers = server.client(), list[Response]()

    def write() -> None:
        with Client(server.url, timeout=WITHIN_S) as writer:
            answers.append(writer.put_file("/late", b"late"))

    def codes() -> list[str]:
        return [item["code"] for item in client.get("/system/health").json().get("findings", ())]

    thread = threading.Thread(target=write, daemon=True)
    with stopped_holder(server.database):
        thread.start()
        eventually(lambda: "database.locked" in codes())
        assert not answers
        assert client.get("/files/late").status == 404
    thread.join(WITHIN_S)
    assert [answer.status for answer in answers] == [201]
    eventually(lambda: "database.locked" not in codes())
