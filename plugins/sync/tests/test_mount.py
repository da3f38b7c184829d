"""``/.conflicts``: what has lost is read as files are, by who may read the path, and never written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient
from svc_sync.exchange.losers import LOSERS, Losers, origin_of, place_of, renew_layout
from svc_sync.exchange.pulling import tidy_all_losers
from svc_sync.exchange.resolving import find_conflict, loser_content, resolve_conflict

from svc.plugin import Identity, ScopedRule, hash_content
from svc.plugins import Plugins
from svc_testing import PathRights, load_with_testing_auth, run_svc, serve_in_process

from .nodes import Node, Nodes  # noqa: TID252

USER = "7f0a2b1c-0000-4000-8000-000000000001"
LARGE = bytes(range(256)) * 1_000
NAMED_AS_A_VERSION = f"{1:016x}-{2:016x}"


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_with_testing_auth("auth.self", "users", "events", "files", "sync")


class Http:
    """A node with conflicts at ``/docs/x``, ``/docs/x/<like a version>`` and ``/secret/y``, over HTTP."""

    def __init__(self, app: Any, node: Node, mode: Any) -> None:
        self.node = node
        self._mode = mode
        self._client = TestClient(app)

    def become(self, identity: Identity) -> None:
        self._mode.identity = identity

    def __call__(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        payload = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **how.pop("headers", {})}
        return self._client.simulate_request(method, path, body=payload, headers=headers, **how)

    def names(self, path: str, **how: Any) -> list[str]:
        answer = self("GET", path, **how)
        assert answer.status_code == 200, answer.text
        return [item["name"] for item in answer.json["items"]]


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins, nodes: Nodes) -> Iterator[Http]:
    with serve_in_process(tmp_path / "t.svcdb", plugins) as (app, database, mode):
        a, b = Node(database), nodes.new()
        b.join(a)
        a.put("docs/x", LARGE)
        a.put("secret/y", b"of a")
        for number, name in enumerate((f"docs/z/{NAMED_AS_A_VERSION}", "docs/z/b", "secret/y", "docs/x")):
            a.put(name, LARGE if number == 3 else b"of a", content_type="text/x-own")
            b.put(name, b"of b, later")
        a.pull(b)
        b.pull(a)
        a.pull(b)
        assert len(a.conflicts()) == 4
        yield Http(app, a, mode)


def test_what_lost_is_read_as_files_are(http: Http) -> None:
    assert http.names("/files/.conflicts") == ["docs", "secret"]
    assert http.names("/files/.conflicts/docs") == ["x", "z"]
    [version] = http.names("/files/.conflicts/docs/x")
    _, found = find_conflict(http.node.database, ("docs", "x"))
    tree, entry = loser_content(http.node.database, found)
    url = f"/files/.conflicts/docs/x/{version}"
    read = http("GET", url)
    assert read.content == tree.read_all(entry)
    assert read.headers["content-type"] == (entry.content_type or "application/octet-stream")
    assert read.headers["etag"] == f'"{entry.hash.hex()}"'
    assert read.headers["x-svc-version"] == http.node.root.hex()
    assert http("GET", url, headers={"Range": "bytes=2-3"}).content == read.content[2:4]
    assert http("HEAD", url).status_code == 200
    assert http("GET", url, headers={"If-None-Match": read.headers["etag"]}).status_code == 304
    everything = http("GET", "/files/.conflicts?depth=-1").json["items"]
    assert len(everything) == 4
    assert http.names("/engine/.conflicts/docs/x") == [version]
    assert http("GET", f"/files/.conflicts?version={http.node.root.hex()}").status_code == 200
    for nothing in ("/files/.conflicts/docs/q", "/files/.conflicts/docs/x/y", f"{url}/z"):
        assert http("GET", nothing).status_code == 404


def test_a_name_like_that_of_a_version_is_told_from_one(http: Http) -> None:
    escaped = f"~{NAMED_AS_A_VERSION}"
    assert http.names("/files/.conflicts/docs/z") == ["b", escaped]
    path = (".conflicts", "docs", "z", escaped)
    assert origin_of(path) == ("docs", "z", NAMED_AS_A_VERSION)
    assert origin_of((*path, NAMED_AS_A_VERSION)) == ("docs", "z", NAMED_AS_A_VERSION)
    assert sorted(Losers(http.node.database).paths()) == sorted(http.node.conflicts())


def test_who_may_not_see_the_path_sees_nothing_here(http: Http) -> None:
    [version] = http.names("/files/.conflicts/secret/y")
    user = Identity(USER, "ann", rights=PathRights({"/docs": "r..l...."}))
    key = Identity(None, "key", rules=(ScopedRule("/docs/**", "-r--l---"),))
    for identity in (user, key):
        http.become(identity)
        shown = http("GET", "/files/.conflicts")
        assert [item["name"] for item in shown.json["items"]] == ["docs"], identity
        assert "secret" not in shown.text
        assert http("GET", "/files/.conflicts/docs/x").status_code == 200
        assert all(
            item["path"].startswith("/.conflicts/docs")
            for item in http("GET", "/files/.conflicts?depth=-1").json["items"]
        )
        plain = http("GET", "/files/secret/nothing")
        for path in ("secret", "secret/y", f"secret/y/{version}", "secret/nothing"):
            answer = http("GET", f"/files/.conflicts/{path}")
            assert answer.status_code == plain.status_code, path
    http.become(Identity(USER, "ann", rights=PathRights({"/.conflicts": "r..l...."})))
    assert http.names("/files/.conflicts") == []
    for path in ("/docs", f"/secret/y/{version}"):
        assert http("GET", f"/files/.conflicts{path}").status_code in (403, 404)


def test_nothing_is_written_there_and_nothing_above_meets_it(http: Http) -> None:
    [version] = http.names("/files/.conflicts/docs/x")
    path = f"/.conflicts/docs/x/{version}"
    head = http.node.root
    content = {"op": "put", "path": "/.conflicts/n", "content": "x"}
    for method, url, body in (
        ("PUT", f"/files{path}", b"x"),
        ("PUT", "/files/.conflicts/new", b"x"),
        ("PUT", "/files/.conflicts", b"x"),
        ("PUT", "/engine/.conflicts/new", b"x"),
        ("DELETE", f"/files{path}", None),
        ("DELETE", "/files/.conflicts?recursive=true", None),
        ("PATCH", f"/files{path}", {"to": "/elsewhere"}),
        ("PATCH", "/files/docs/z", {"to": "/.conflicts/z"}),
        ("PUT", "/links/.conflicts/l", {"target": "/docs"}),
        ("POST", "/files/mkdir", {"path": "/.conflicts/d"}),
        ("POST", "/files/copy", {"paths": ["/docs"], "destination": "/.conflicts"}),
        ("POST", "/files/batch", {"operations": [content]}),
        ("POST", "/files/batch", {"operations": [{"op": "delete", "path": path}]}),
        ("POST", "/files/batch", {"operations": [{"op": "mkdir", "path": "/.conflicts/d"}]}),
    ):
        answer = http(method, url, body)
        assert answer.status_code in (403, 405), (method, url, answer.text)
    assert http("PUT", "/links/way", {"target": "/.conflicts/new"}).status_code == 201
    assert http("PUT", "/files/way", b"x").status_code == 403
    assert http("GET", "/files/way").status_code == 404
    assert http("DELETE", "/links/way").status_code == 200
    assert http.node.root == head
    assert ".conflicts" not in http.names("/files/")
    found = http("GET", "/files/?depth=-1&glob=**").json["items"]
    assert not [item for item in found if item["path"].startswith("/.conflicts")]


def test_what_is_resolved_is_gone_with_its_directories(http: Http) -> None:
    for path in http.node.conflicts():
        resolve_conflict(http.node.database, path, pick_loser=False, name=None)
    assert http("GET", "/files/.conflicts").status_code == 404
    assert list(Losers(http.node.database).paths()) == []


def test_a_database_file_shows_it_at_the_shell(http: Http) -> None:
    path = str(http.node.database.path)
    done = run_svc("ls", "/.conflicts/docs", "-D", path)
    assert (done.exit_code, done.stdout.split()) == (0, ["x/", "z/"]), done
    [name] = run_svc("ls", "/.conflicts/secret/y", "-D", path).stdout.split()
    done = run_svc("cat", f"/.conflicts/secret/y/{name}", "-D", path)
    assert done.stdout in ("of a", "of b, later")
    assert ".conflicts" not in run_svc("ls", "/", "-D", path).stdout
    done = run_svc("mkdir", "/.conflicts/d", "-D", path)
    assert "can only be read" in done.stderr, done


def test_what_an_older_svc_has_kept_gets_its_place(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    a.put("docs/x", b"of a")
    b.put("docs/x", b"of b, later")
    a.pull(b)
    [(path, [row])] = a.conflicts().items()
    losers = Losers(a.database)
    entry = losers.at(path, row.dot)
    assert entry is not None
    content = losers.read_all(entry)
    directory = hash_content(b"/docs/x").hex()
    with a.database.transaction(ref=LOSERS) as changes:
        changes.delete((".conflicts",), recursive=True)
        changes.put_entry((directory, losers.names(path)[0]), entry)
        changes.link((directory, "path"), "/docs/x")
    for _ in range(2):
        renew_layout(a.database)
        losers = Losers(a.database)
        entry = losers.at(path, row.dot)
        assert entry is not None
        assert losers.read_all(entry) == content
        assert list(losers.paths()) == [path]
    assert losers.version is not None
    assert [name for name, _ in losers.version.entries(())] == [".conflicts"]


VERSION_NAME = "0123456789abcdef-0123456789abcdef"


@pytest.mark.parametrize("tildes", [0, 1, 220, 221, 222])
@pytest.mark.parametrize("above", [(), ("docs",), ("~" * 222 + VERSION_NAME,), (f"{0:016x}-{0:016x}",)])
def test_each_path_has_a_place_of_its_own(above: tuple[str, ...], tildes: int) -> None:
    path = (*above, "~" * tildes + VERSION_NAME)
    for below in (path, (*path, "x"), (*path, *path)):
        place = place_of(below, VERSION_NAME)
        assert origin_of(place) == below
        assert origin_of(place[:-1]) == below
        assert all(len(name) <= 255 for name in place)


def test_what_lost_at_the_longest_names_stays(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    b.pull(a)
    a.pull(b)
    names = ["~" * tildes + VERSION_NAME for tildes in (221, 222)]
    for name in names:
        a.put(name, b"of a")
        b.put(name, b"of b, later")
    a.pull(b)
    tidy_all_losers(a.database)
    losers = Losers(a.database)
    for name in names:
        [row] = a.conflicts()[(name,)]
        assert losers.at((name,), row.dot) is not None, len(name)
    b.pull(a)
    assert sorted(b.conflicts()) == sorted((name,) for name in names)
