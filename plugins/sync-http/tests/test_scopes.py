"""Real nodes of which some take a part of the paths only."""

from __future__ import annotations

import json

from svc_testing import Server, run_svc

from .conftest import Cluster, ask, bearer, put, root_key, wait_until  # noqa: TID252


def read(server: Server, path: str, **headers: str) -> bytes | None:
    answer = server.request("GET", f"/files{path}", headers=headers)
    return answer.body if answer.status == 200 else None


def test_a_member_with_one_directory(cluster: Cluster) -> None:
    a, b = cluster.start("a"), cluster.start("b")
    large = bytes(range(256)) * 2_000
    put(a, "/docs/large.bin", large)
    put(a, "/secret/x", b"hidden")
    put(b, "/own", b"mine")
    done = run_svc("sync", "join", a.url, "--path", "docs", "-D", b.url)
    assert done.exit_code == 2, done
    done = run_svc("sync", "join", a.url, "--path", "/docs/**", "-D", b.url)
    assert done.exit_code == 0, done
    wait_until(lambda: read(b, "/docs/large.bin") == large, "the first copy is complete")
    put(b, "/docs/of-b", b"1")
    put(a, "/docs/of-a", b"2")
    put(a, "/secret/y", b"hidden")
    wait_until(lambda: (read(a, "/docs/of-b"), read(b, "/docs/of-a")) == (b"1", b"2"), "both have both")
    assert read(b, "/secret/x") is read(b, "/secret/y") is read(a, "/own") is None
    assert read(b, "/own") == b"mine"
    status = ask(b, "GET", "/sync/status")
    assert status["sync_paths"] == ["/docs/**"]
    assert status["peers"][0]["sync_paths"] is None
    assert ask(a, "GET", "/sync/peers")[0]["sync_paths"] == ["/docs/**"]
    assert "/docs/**" in run_svc("sync", "peers", "-D", a.url).stdout
    assert "/docs/**" in run_svc("sync", "status", "-D", b.url).stdout
    same = run_svc("sync", "add", b.url, "--path", "/docs/**", "--json", "-D", a.url)
    assert json.loads(same.stdout)["sync_paths"] == ["/docs/**"], same
    for paths in (["/docs/**", "/more/**"], ["/**"]):
        other = ask(a, "POST", "/sync/peers", {"address": b.url, "sync_paths": paths}, status=409)
        assert "/docs/**" in other["error"]
    ask(a, "POST", "/sync/peers", {"address": b.url, "sync_paths": ["x"]}, status=400)


def test_keys_stay_those_of_the_node(cluster: Cluster) -> None:
    a = cluster.start("a", auth="self-contained")
    of_a = bearer(a)
    put(a, "/docs/x", b"1", **of_a)
    b = cluster.start(
        "b",
        "--join",
        a.url,
        "--join-token",
        root_key(a),
        "--plugin-option",
        'sync.sync_paths=["/docs/**"]',
        auth="self-contained",
    )
    of_b = bearer(b)
    wait_until(lambda: read(b, "/docs/x", **of_b) == b"1", "the first copy is complete")
    assert ask(b, "GET", "/sync/status", headers=of_b)["sync_paths"] == ["/docs/**"]
    assert ask(b, "POST", "/auth/token", {"api_key": root_key(a)}, status=None)["code"] == "AUTH_REQUIRED"
    assert b.request("GET", "/files/docs/x", headers=of_a).status == 401
    assert a.request("GET", "/files/docs/x", headers=of_b).status == 401
    put(b, "/docs/y", b"2", **of_b)
    wait_until(lambda: read(a, "/docs/y", **of_a) == b"2", "the nodes talk")
