"""Who may do what with versions: root's routes are root's, and nobody sees a path through history."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from svc_blackbox.client import Client, assert_error, files
from svc_blackbox.versions import (
    PLURAL,
    SINGULAR,
    fork_names,
    fresh,
    head_version,
    make_fork,
    make_snapshot,
    merge,
    snapshot_names,
)

Connect = Callable[[str | None], Client]

ROOT_ONLY = [
    ("POST", "/version/restore", {"name": "SNAPSHOT"}),
    ("POST", "/versions/restore", {"name": "SNAPSHOT"}),
    ("DELETE", "/version/snapshot/SNAPSHOT", None),
    ("DELETE", "/versions/snapshots/SNAPSHOT", None),
    ("PATCH", "/versions/snapshots/SNAPSHOT", {"name": "other"}),
    ("POST", "/version/fork/FORK/promote", {}),
    ("POST", "/versions/forks/FORK/promote", {}),
    ("DELETE", "/version/fork/FORK", None),
    ("DELETE", "/versions/forks/FORK", None),
    ("POST", "/version/file-restore/own/f", {"snapshot": "SNAPSHOT"}),
    ("POST", "/versions/file-restore/own/f", {"snapshot": "SNAPSHOT"}),
    ("POST", "/versions/merge", {"from": "FORK", "into": "HEAD", "strategy": "fail"}),
    ("POST", "/versions/export", {}),
    ("POST", "/versions/export?snapshot=SNAPSHOT", None),
    ("POST", "/versions/diff?from=SNAPSHOT", None),
    ("POST", "/versions/import", {"file": "/nowhere.svcdb", "promote": False}),
    ("POST", "/versions/import", None),
    ("POST", "/versions/promote", {"hash": "0" * 64}),
    ("PUT", "/system/lifecycle", {"snapshot_writes_enabled": False}),
]


@pytest.fixture
def made(caller: Connect, area: str) -> tuple[str, str]:
    """Names of a snapshot and of a fork; HEAD has moved on since the snapshot."""
    root = caller("root")
    root.store("/own/f", b"old")
    root.store(f"{area}/f", b"old")
    root.store("/public/f", b"public")
    make_snapshot(root, snapshot := fresh("made"))
    root.store("/own/f", b"new")
    root.store(f"{area}/f", b"new")
    make_fork(root, fork := fresh("made"))
    return snapshot, fork


@pytest.mark.parametrize("who", ["ann", "bob", "scoped", "share", None])
@pytest.mark.parametrize("request_", ROOT_ONLY, ids=[f"{item[0]} {item[1]}" for item in ROOT_ONLY])
def test_only_root_may(
    caller: Connect, made: tuple[str, str], who: str | None, request_: tuple[str, str, object]
) -> None:
    snapshot, fork = made
    root, client = caller("root"), caller(who)
    state = (head_version(root), snapshot_names(root), fork_names(root))

    def named(text: str) -> str:
        return text.replace("SNAPSHOT", snapshot).replace("FORK", fork)

    method, target, body = request_
    if isinstance(body, dict):
        body = {key: named(value) if isinstance(value, str) else value for key, value in body.items()}
        response = client.send_json(method, named(target), body)
    else:
        response = client.request(method, named(target), b"" if method == "POST" else None)
    if who is None:
        assert_error(response, 401, "AUTH_REQUIRED")
        assert "Bearer" in response["WWW-Authenticate"]
    elif who in ("scoped", "share"):
        assert response.status in (403, 404)
        assert_error(response, response.status)
    else:
        assert_error(response, 403, "FORBIDDEN")
    assert (head_version(root), snapshot_names(root), fork_names(root)) == state


def test_a_refusal_does_not_say_what_exists(caller: Connect, made: tuple[str, str]) -> None:
    ann = caller("ann")
    for known, unknown in (
        (PLURAL.snapshot(made[0]), PLURAL.snapshot(fresh("no"))),
        (SINGULAR.fork(made[1]), SINGULAR.fork(fresh("no"))),
    ):
        one, other = ann.delete(known), ann.delete(unknown)
        assert (one.status, one.json()["code"]) == (other.status, other.json()["code"])


def test_every_user_makes_and_lists_snapshots_and_forks(caller: Connect, area: str) -> None:
    ann = caller("ann")
    ann.store(f"{area}/f", b"x")
    snapshot = make_snapshot(ann, name := fresh("anns"))
    fork = make_fork(ann, name)
    assert snapshot["created_by"] is not None
    assert snapshot["created_by"] == fork["created_by"]
    reader = caller("reader")
    assert name in snapshot_names(reader)
    assert name in fork_names(reader)


@pytest.mark.parametrize("who", ["scoped", "share", None])
@pytest.mark.parametrize(
    "route", ["/version/snapshot", "/versions/snapshots", "/version/fork", "/versions/forks"]
)
def test_a_scoped_key_and_nobody_make_none(
    caller: Connect, made: tuple[str, str], who: str | None, route: str
) -> None:
    root = caller("root")
    state = (snapshot_names(root), fork_names(root))
    response = caller(who).post(route, {"name": fresh("theirs")})
    assert response.status in ((401,) if who is None else (403, 404))
    assert_error(response, response.status)
    assert (snapshot_names(root), fork_names(root)) == state


READS = [
    "/versions/log",
    "/versions/snapshots",
    "/versions/forks",
    "/version/snapshots",
    "/version/forks",
    "/versions/file-history/own/f",
    "/versions/compare?from=HEAD&to=HEAD",
    "/versions/blame/own/f",
    "/system/lifecycle",
]


@pytest.mark.parametrize("target", READS)
def test_nobody_reads_without_credentials(caller: Connect, made: tuple[str, str], target: str) -> None:
    assert_error(caller(None).get(target), 401, "AUTH_REQUIRED")


@pytest.mark.parametrize("who", ["scoped", "bob"])
def test_a_denied_path_looks_like_one_that_never_was(
    caller: Connect, made: tuple[str, str], area: str, who: str
) -> None:
    client = caller(who)
    for path in (f"{area}/f", f"{area}/never", area):
        for query in ({}, {"commits": "true"}):
            denied = client.get(f"/versions/file-history{path}", **query)
            missing = client.get("/versions/file-history/nowhere/never", **query)
            assert denied.status == missing.status
            if denied.status == 200:
                assert denied.json()["history"] == missing.json()["history"] == []
    denied, missing = client.get(f"/versions/blame{area}/f"), client.get("/versions/blame/nowhere/never")
    assert (denied.status, denied.json()["code"]) == (missing.status, missing.json()["code"])
    for query in ({"snapshot": made[0]}, {"fork": made[1]}):
        denied, missing = client.get(files(f"{area}/f"), **query), client.get(files("/nowhere/x"), **query)
        assert (denied.status, denied.json()["code"]) == (missing.status, missing.json()["code"])


def test_comparisons_and_commits_show_only_what_may_be_read(
    caller: Connect, made: tuple[str, str], area: str
) -> None:
    root = caller("root")
    batch = {"operations": [
        {"op": "put", "path": path, "content": fresh()} for path in ("/public/f", "/own/f", f"{area}/f")
    ]}  # fmt: skip
    version = root.post("/files/batch", batch).json()["version"]
    for who, seen in (("bob", "/public/f"), ("scoped", "/own/f"), ("reader", f"{area}/f")):
        client = caller(who)
        value = client.get("/versions/compare", **{"from": made[0], "to": "HEAD"})
        assert value.status == 200, value.body
        paths = {change["path"] for change in value.json()["changes"]}
        assert seen in paths
        if who != "reader":
            assert f"{area}/f" not in paths
            assert all(path.startswith(seen.rsplit("/", 1)[0]) for path in paths)
            assert area.encode() not in value.body
        commit = client.get(f"/versions/commits/{version}")
        assert commit.status in (200, 404)
        if who != "reader":
            assert area.encode() not in commit.body


def test_reading_at_a_version_obeys_the_rules_of_now(
    caller: Connect, made: tuple[str, str], area: str
) -> None:
    scoped = caller("scoped")
    assert scoped.read("/own/f", snapshot=made[0]) == b"old"
    assert_error(scoped.get(files(f"{area}/f"), snapshot=made[0]), 404, "NOT_FOUND")
    assert set(scoped.names("/", snapshot=made[0])) == {"own"}


def test_a_scoped_key_writes_to_a_fork_where_it_may(
    caller: Connect, made: tuple[str, str], area: str
) -> None:
    scoped, root = caller("scoped"), caller("root")
    assert scoped.put_file("/own/f", b"scoped", fork=made[1]).status == 200
    assert_error(scoped.put_file(f"{area}/f", b"scoped", fork=made[1]), 404, "NOT_FOUND")
    assert root.read("/own/f", fork=made[1]) == b"scoped"
    assert root.read("/own/f") == b"new"


def test_the_log_says_who(caller: Connect, area: str) -> None:
    ann, root = caller("ann"), caller("root")
    version = ann.store(f"{area}/f", b"x")["version"]
    users = {
        entry["version"]: entry["user"] for entry in root.get("/versions/log", limit=5).json()["commits"]
    }
    history = root.get(f"/versions/file-history{area}/f", commits="true").json()["history"]
    assert users[version]
    assert history[0]["user"] == users[version]
    root.store(f"{area}/f", b"y")
    assert root.get("/versions/log", limit=1).json()["commits"][0]["user"] != users[version]


def test_what_is_deleted_shows_only_to_those_who_may_delete(caller: Connect, area: str) -> None:
    """The past of a path that is gone needs the permission to delete there, by every road."""
    root, reader, ann = caller("root"), caller("reader"), caller("ann")
    old = root.store(f"{area}/gone", b"secret of the past")["version"]
    root.store(f"{area}/kept", b"kept")
    make_snapshot(root, name := fresh("past"))
    gone = root.delete(files(f"{area}/gone")).json()["version"]
    roads = [
        lambda client: client.get(files(f"{area}/gone"), snapshot=name),
        lambda client: client.get(files(f"{area}/gone"), version=old),
        lambda client: client.get("/versions/blame" + f"{area}/gone", snapshot=name),
        lambda client: client.get(f"/versions/commits/{old}"),
        lambda client: client.get(f"/versions/commits/{gone}"),
        lambda client: client.get("/versions/compare", **{"from": name, "to": "HEAD", "path": area}),
        lambda client: client.get("/versions/log", path=f"{area}/gone"),
        lambda client: client.get(f"/versions/history{area}/gone", commits="true"),
        lambda client: client.get(f"/versions/history{area}/gone"),
        lambda client: client.get(files(area), snapshot=name),
        lambda client: client.get(files(area), snapshot=name, depth=-1),
        lambda client: client.post("/files/fetch", {"paths": [f"{area}/gone"]}, snapshot=name),
    ]
    for number, road in enumerate(roads):
        hidden, shown = road(reader), road(ann)
        assert shown.status == 200, (number, shown.body)
        assert b"secret of the past" not in hidden.body, number
        assert hidden.status in (200, 403, 404), number
        if hidden.status == 200:
            value = hidden.json()
            value.pop("path", None)
            if "items" in value and any("error" in item for item in value["items"]):
                continue
            assert f"{area}/gone" not in str(value), (number, value)
            assert value.get("history", []) == []
            assert value.get("commits", []) == []
    assert reader.read(f"{area}/kept", snapshot=name) == b"kept"


@pytest.mark.parametrize("who", ["reader", "writer"])
def test_a_fork_of_the_past_is_no_way_around(caller: Connect, area: str, who: str) -> None:
    """Whoever may not see what was deleted does not get it from a branch that begins before the deletion."""
    root, client = caller("root"), caller(who)
    root.store(f"{area}/gone", b"secret of the past")
    make_snapshot(root, name := fresh("past"))
    root.delete(files(f"{area}/gone"))
    response = client.post("/versions/forks", {"name": (fork := fresh("branch")), "base": name})
    if response.status == 201:
        assert client.get(files(f"{area}/gone"), fork=fork).status in (403, 404)
    else:
        assert_error(response, response.status)
        assert fork not in fork_names(root)


def test_merging_the_past_into_a_fork_is_no_way_around(caller: Connect, area: str) -> None:
    root, client = caller("root"), caller("writer")
    root.store(f"{area}/gone", b"secret of the past")
    make_snapshot(root, name := fresh("past"))
    root.delete(files(f"{area}/gone"))
    make_fork(client, fork := fresh("branch"))
    assert_error(client.get(files(f"{area}/gone"), fork=fork), 404, "NOT_FOUND")
    for source in (f"snapshots/{name}", name):
        merge(client, source, fork, "theirs")
        assert client.get(files(f"{area}/gone"), fork=fork).status in (403, 404)
