"""Real nodes that were removed, put back from an older copy of their file, or copied, return."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from svc_testing import Server, run_svc

from .conftest import Cluster, ask, head, put, wait_for_agreement, wait_until  # noqa: TID252


def join(server: Server, member: Server) -> None:
    ask(server, "POST", "/sync/enter", {"address": member.url})
    wait_until(lambda: not ask(server, "GET", "/sync/status")["is_copying"], "the first copy is complete")


def stop(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(20)


def read(server: Server, path: str) -> bytes | None:
    answer = server.request("GET", f"/files{path}")
    return answer.body if answer.status == 200 else None


def test_a_removed_node_returns_when_somebody_says_so(cluster: Cluster) -> None:
    a, b = cluster.start("a"), cluster.start("b")
    put(a, "/x.txt", b"1")
    join(b, a)
    wait_for_agreement(a, b)
    node_id = ask(b, "GET", "/sync/status")["node_id"]
    ask(a, "DELETE", f"/sync/peers/{node_id}")
    put(b, "/of-b.txt", b"of b")
    put(a, "/of-a.txt", b"of a")
    wait_until(lambda: ask(b, "GET", "/sync/status")["stale"] == "removed", "b is told")
    done = run_svc("sync", "status", "-D", b.url)
    assert "it was removed from the cluster" in done.stdout, done
    assert read(a, "/of-b.txt") is None
    done = run_svc("sync", "rejoin", "-D", b.url)
    assert done.exit_code == 0, done
    wait_for_agreement(a, b)
    wait_until(lambda: ask(b, "GET", "/sync/status")["stale"] is None, "b is a member")
    assert (read(a, "/of-b.txt"), read(b, "/of-a.txt")) == (b"of b", b"of a")
    assert len(ask(a, "GET", "/sync/status")["members"]) == 2
    done = run_svc("sync", "rejoin", a.url, "-D", b.url)
    assert done.exit_code != 0
    assert "need not join anew" in done.stderr


def test_an_older_copy_of_the_file_and_a_copied_file_join_anew_by_themselves(cluster: Cluster) -> None:
    a, b = cluster.start("a"), cluster.start("b")
    put(a, "/x.txt", b"1")
    join(b, a)
    wait_for_agreement(a, b)
    stop(b)
    file, older = Path(b.database_path), cluster.directory / "older.svcdb"
    shutil.copyfile(file, older)
    b = cluster.start("b")
    put(b, "/seen.txt", b"seen by a")
    wait_for_agreement(a, b)
    stop(b)
    shutil.copyfile(older, file)
    shutil.rmtree(f"{file}.d")
    b = cluster.start("b")
    put(b, "/since.txt", b"written since")
    wait_until(lambda: read(a, "/since.txt") == b"written since", "what was written since arrives")
    wait_for_agreement(a, b)
    assert read(b, "/seen.txt") == b"seen by a"
    ids = ask(b, "GET", "/sync/status")
    assert len(ids["members"]) == 2

    stop(b)
    shutil.copyfile(file, cluster.directory / "c.svcdb")
    b = cluster.start("b")
    c = cluster.start("c")
    put(c, "/of-c.txt", b"of the copy")
    wait_until(lambda: read(a, "/of-c.txt") == b"of the copy", "the copy is a node of its own")
    wait_for_agreement(a, b, c)
    put(b, "/of-b.txt", b"of the original")
    wait_for_agreement(a, b, c)
    assert read(c, "/of-b.txt") == b"of the original"
    assert ask(b, "GET", "/sync/status")["node_id"] == ids["node_id"]
    assert len(ask(a, "GET", "/sync/status")["members"]) == 3
    assert head(a) == head(c)
    for server in (a, b, c):
        done = run_svc("verify", "-D", str(server.database_path))
        assert done.exit_code == 0, done
