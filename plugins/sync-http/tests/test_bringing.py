"""A real node that holds files joins a cluster with them, also if it is killed on the way."""

from __future__ import annotations

import random

from svc_testing import run_svc

from .conftest import Cluster, ask, put, wait_for_agreement, wait_until  # noqa: TID252

LARGE = random.Random(1).randbytes(8 << 20)


def test_a_node_that_holds_files_joins_with_them(cluster: Cluster) -> None:
    a, b = cluster.start("a"), cluster.start("b")
    for server, content in ((a, b"of a"), (b, b"of b")):
        put(server, "/both.txt", content)
        put(server, f"/{content.decode().replace(' ', '-')}.bin", LARGE + content)
        ask(server, "POST", "/versions/snapshots", {"name": "before"}, status=201)
    done = run_svc("sync", "join", a.url, "-D", b.url)
    assert (done.exit_code != 0, "--merge" in done.stderr) == (True, True), done
    b.process.terminate()
    b.process.wait(20)
    b = cluster.start("b", "--join", a.url, "--join-merge", "true")
    wait_until(lambda: ask(b, "GET", "/sync/status")["is_copying"], "it has begun")
    b.kill()
    b = cluster.start("b")
    wait_until(lambda: not ask(b, "GET", "/sync/status")["is_copying"], "it is a member")
    wait_for_agreement(a, b)
    node_id = ask(b, "GET", "/sync/status")["node_id"]
    for server in (a, b):
        for name in ("of-a", "of-b"):
            assert server.request("GET", f"/files/{name}.bin").body == LARGE + name.replace("-", " ").encode()
        assert server.request("GET", "/files/both.txt").body == b"of a"
        (conflict,) = ask(server, "GET", "/sync/conflicts")["conflicts"]
        assert conflict["path"] == "/both.txt"
        assert server.request("GET", "/sync/conflicts/both.txt").body == b"of b"
        names = {one["name"] for one in ask(server, "GET", "/versions/snapshots")["snapshots"]}
        assert names == {"before", f"before~{node_id}"}
    assert run_svc("verify", "-D", str(b.database_path)).exit_code == 0
