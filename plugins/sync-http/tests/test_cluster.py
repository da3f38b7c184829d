"""Nodes that are real servers: two and three of them, cut off, killed, restarted."""

from __future__ import annotations

import json
import os
import random
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from svc_cli.processes.registration import registered_processes
from svc_testing import Server, run_svc

from .conftest import (  # noqa: TID252
    Cluster,
    ask,
    bearer,
    head,
    put,
    root_key,
    wait_for_agreement,
    wait_until,
)


def join(server: Server, member: Server) -> None:
    ask(server, "POST", "/sync/enter", {"address": member.url})
    wait_until(lambda: not ask(server, "GET", "/sync/status")["is_copying"], "the first copy is complete")


def test_two_nodes(cluster: Cluster) -> None:
    a, b = cluster.start("a"), cluster.start("b")
    put(a, "/docs/one.txt", b"one")
    put(a, "/docs/large.bin", bytes(range(256)) * 4_000, "application/x-large")
    done = run_svc("sync", "join", a.url, "-D", b.url)
    assert done.exit_code == 0, done
    wait_until(lambda: not ask(b, "GET", "/sync/status")["is_copying"], "the first copy is complete")
    assert head(a) == head(b)
    assert ask(a, "GET", "/sync/") == ask(a, "GET", "/sync/status")
    put(a, "/docs/two.txt", b"two")
    put(b, "/docs/three.txt", b"three")
    wait_for_agreement(a, b)
    assert b.request("GET", "/files/docs/two.txt").body == b"two"
    assert a.request("GET", "/files/docs/three.txt").body == b"three"
    large = b.request("GET", "/files/docs/large.bin")
    assert (large.body, large.headers["content-type"]) == (bytes(range(256)) * 4_000, "application/x-large")
    assert a.request("DELETE", "/files/docs/one.txt").status == 200
    wait_until(lambda: b.request("GET", "/files/docs/one.txt").status == 404, "the deletion has arrived")
    wait_for_agreement(a, b)
    done = ask(a, "POST", "/sync/trigger")
    assert [one["ok"] for one in done["results"]] == [True], done


def test_peers_that_a_start_names(cluster: Cluster) -> None:
    a, b = cluster.start("a"), cluster.start("b", "--cluster-address", "")
    join(b, a)
    assert not ask(a, "GET", "/sync/peers"), "nobody has told it where the other is"
    a.stop()
    a = cluster.start("a", "--peers", f"http://127.0.0.1:1,{b.url}")
    wait_until(lambda: [one["address"] for one in ask(a, "GET", "/sync/peers")] == [b.url], "it is a peer")
    put(b, "/one.txt", b"one")
    wait_until(lambda: a.request("GET", "/files/one.txt").status == 200, "it is pulled from")
    assert "http://127.0.0.1:1" in a.errors


def test_three_nodes_agree_whatever_is_stopped_and_killed(cluster: Cluster) -> None:
    a, b, c = (cluster.start(name) for name in "abc")
    join(b, a)
    join(c, a)
    chance = random.Random(3)
    number = 0

    def write(*servers: Server) -> None:
        nonlocal number
        for server in servers:
            for _ in range(6):
                number += 1
                path = f"/files/{chance.choice('ab')}/{chance.choice('abcdef')}"
                if chance.random() < 0.75:
                    server.request("PUT", path, body=b"%d" % number * chance.choice((1, 30_000)))
                else:
                    server.request("DELETE", path)

    write(a, b, c)
    c.process.send_signal(signal.SIGTERM)
    c.process.wait(20)
    write(a, b)
    for _ in range(3):
        write(a, b)
        kill_background(b)
    write(a, b)
    c = cluster.start("c")
    write(c)
    kill_background(c)
    wait_for_agreement(a, b, c)
    listed = [conflicts_of(one) for one in (a, b, c)]
    assert listed[0] == listed[1] == listed[2]
    for server in (a, b, c):
        done = run_svc("verify", "-D", str(server.database_path))
        assert done.exit_code == 0, done


def test_a_conflict_by_the_shell(cluster: Cluster) -> None:
    a, b = cluster.start("a"), cluster.start("b")
    join(b, a)

    def svc(server: Server, *words: str, code: int = 0) -> Any:
        done = run_svc(*words, "--json", "-D", server.url)
        assert done.exit_code == code, done
        return json.loads(done.stdout) if done.stdout else None

    b.process.send_signal(signal.SIGTERM)
    b.process.wait(20)
    put(a, "/x.txt", b"of a")
    a.process.send_signal(signal.SIGTERM)
    a.process.wait(20)
    b = cluster.start("b")
    put(b, "/x.txt", b"of b, later")
    a = cluster.start("a")
    wait_until(lambda: len(conflicts_of(a)) == len(conflicts_of(b)) == 1, "both list the conflict")
    [shown] = svc(a, "conflicts", "list")
    assert (shown["path"], shown["kind"]) == ("/x.txt", "add_add")
    ids = {one: ask(server, "GET", "/sync/status")["node_id"] for one, server in (("a", a), ("b", b))}
    assert (shown["loser"]["node_id"], shown["winner"]["node_id"]) == (ids["a"], ids["b"])
    assert svc(b, "conflicts", "show", "/x.txt") == [shown]
    words = run_svc("conflicts", "diff", "/x.txt", "-D", a.url)
    assert words.stdout.splitlines()[-2:] == ["-of b, later", "+of a"], words
    assert run_svc("conflicts", "diff", "/y.txt", "-D", a.url).exit_code == 3
    [name] = run_svc("ls", "/.conflicts/x.txt", "-D", b.url).stdout.split()
    assert name == shown["loser"]["version"]
    assert b.request("GET", f"/files/.conflicts/x.txt/{name}").body == b"of a"
    assert run_svc("cat", f"/.conflicts/x.txt/{name}", "-D", b.url).stdout == "of a"
    assert b.request("PUT", "/files/.conflicts/x.txt", body=b"x").status == 403
    for server in (a, b):
        assert server.request("GET", "/files/x.txt").body == b"of b, later"
        assert server.request("GET", "/sync/conflicts/x.txt").body == b"of a"
    assert svc(a, "conflicts", "resolve", "/x.txt", "--pick", "loser")["picked"] == "loser"
    wait_until(lambda: conflicts_of(b) == [], "the resolution has arrived")
    wait_for_agreement(a, b)
    assert b.request("GET", "/files/x.txt").body == b"of a"
    svc(a, "conflicts", "resolve", "/x.txt", code=3)
    assert svc(a, "conflicts", "list") == []
    status = svc(a, "sync", "status")
    assert sorted(status["members"]) == sorted(ids.values())
    assert [one["state"] for one in svc(a, "sync", "peers")] == ["Active"]
    assert [one["ok"] for one in svc(a, "sync", "trigger")["results"]] == [True]
    svc(a, "sync", "add", "http://127.0.0.1:1", code=8)
    svc(a, "sync", "remove", "12345", code=3)
    assert svc(a, "sync", "remove", str(ids["b"]))["deleted"] is True
    wait_until(lambda: ask(b, "GET", "/sync/peers")[0]["last_error"] is not None, "b is refused")
    stats = ask(a, "GET", "/system/stats")
    assert stats["identity"]["node_id"] == ids["a"]
    assert stats["sync"]["peers"] == 0


def test_nodes_with_keys_share_what_signs(cluster: Cluster) -> None:
    a = cluster.start("a", auth="self-contained")
    of_a = bearer(a)
    put(a, "/x.txt", b"1", **of_a)
    for path in ("join", "hello", "registers", "tree", "objects", "pull", "peers", "trigger", "enter"):
        assert ask(a, "POST", f"/sync/{path}", {}, status=401)["code"] == "AUTH_REQUIRED"
    key = root_key(a)
    b = cluster.start("b", "--join", a.url, "--join-token", key, auth="self-contained")
    alone = bearer(b)
    wait_until(lambda: b.request("GET", "/files/x.txt", headers=of_a).status == 200, "the copy is complete")
    assert b.request("GET", "/files/x.txt", headers=alone).status == 401, "its keys are those of the cluster"
    of_b = bearer(b, key)
    put(b, "/y.txt", b"2", **of_b)
    wait_until(lambda: a.request("GET", "/files/y.txt", headers=of_a).status == 200, "a has pulled")
    assert head(a, headers=of_a) == head(b, headers=of_b)
    assert key not in b.output + b.errors
    # A new signing key of users, without the ones before, does not part the nodes.
    rotated = ask(a, "POST", "/auth/signing-key", {"end_tokens": True}, status=201, headers=of_a)
    assert rotated["kid"]
    of_a = bearer(a)
    put(a, "/z.txt", b"3", **of_a)
    wait_until(lambda: b.request("GET", "/files/z.txt", headers=of_b).status == 200, "b has pulled")
    put(b, "/z.txt", b"4", **of_b)
    wait_until(lambda: a.request("GET", "/files/z.txt", headers=of_a).body == b"4", "a has pulled")
    assert ask(a, "GET", "/sync/peers", headers=of_a)[0]["last_error"] is None


def conflicts_of(server: Server) -> list[Any]:
    found: list[Any] = ask(server, "GET", "/sync/conflicts")["conflicts"]
    return found


def kill_background(server: Server) -> None:
    """Kills the process that pulls, wherever it is in its work; the server starts another one."""
    directory = Path(f"{server.database_path}.d")
    for process in registered_processes(directory):
        if process.kind == "background":
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
