"""Forks: branches that are written to without moving HEAD."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files, links
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    PLURAL,
    SINGULAR,
    Family,
    contents,
    fork_names,
    fork_of,
    fresh,
    head_version,
    list_forks,
    make_fork,
    make_snapshot,
    tree,
)


def test_a_fork_begins_at_head(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/f", b"one")
    before = time.time() * 1000
    fork = make_fork(http, name := fresh(), family)
    assert fork["name"] == name
    assert fork["root_hash"] == head_version(http) == fork["base"]
    assert before - 1000 <= fork["created_at"] <= time.time() * 1000 + 1000
    assert "created_by" in fork
    assert head_version(http, fork=name) == fork["root_hash"]


def test_a_fork_begins_at_a_snapshot(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/f", b"one")
    snapshot = make_snapshot(http, fresh())
    http.store(f"{area}/f", b"two")
    fork = make_fork(http, name := fresh(), family, base=snapshot["name"])
    assert fork["root_hash"] == fork["base"] == snapshot["root_hash"]
    assert http.read(f"{area}/f", fork=name) == b"one"
    assert http.read(f"{area}/f") == b"two"


def test_an_unknown_base_is_404_and_makes_nothing(http: Client, family: Family) -> None:
    response = http.post(family.fork_routes[0], {"name": (name := fresh()), "base": fresh("no-such")})
    assert_error(response, 404, "NOT_FOUND")
    assert name not in fork_names(http)


def test_a_name_that_exists_is_409(http: Client, area: str, family: Family) -> None:
    fork = make_fork(http, name := fresh(), family)
    http.store(f"{area}/f", b"moved")
    assert_error(http.post(family.fork_routes[0], {"name": name}), 409, "ALREADY_EXISTS")
    assert fork_of(http, name) == fork


def test_a_fork_and_a_snapshot_may_have_one_name(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"one")
    make_snapshot(http, name := fresh())
    http.store(f"{area}/f", b"two")
    make_fork(http, name)
    assert http.read(f"{area}/f", fork=name) == b"two"
    assert http.read(f"{area}/f", snapshot=name) == b"one"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x" * 201},
        {"name": "a\nb"},
        {"name": 1},
        {"name": "ok", "base": 1},
        [],
        None,
    ],
)
def test_a_bad_request_is_400_and_makes_nothing(http: Client, family: Family, body: object) -> None:
    before = list_forks(http)
    assert_error(http.post(family.fork_routes[0], body), 400, "INVALID_INPUT")
    assert list_forks(http) == before


@pytest.mark.parametrize("name", ["%2541", "☃ ü", "a?b#c&d", "x" * 200, "HEAD", "forks"])
def test_any_printable_name_will_do(http: Client, area: str, name: str) -> None:
    http.store(f"{area}/f", b"head")
    response = http.post(PLURAL.fork_routes[0], {"name": name})
    if name == "HEAD" and response.status == 400:
        assert_error(response, 400, "INVALID_INPUT")
        return
    assert response.status == 201, response.body
    assert http.put_file(f"{area}/f", name.encode(), fork=name).status == 200
    assert http.read(f"{area}/f", fork=name) == name.encode()
    assert http.post(PLURAL.fork(name, "/promote"), {}).status == 200
    assert http.read(f"{area}/f") == name.encode()
    assert http.delete(PLURAL.fork(name)).json().items() >= {"abandoned": True, "name": name}.items()


def test_lists_are_newest_first_and_the_same_in_both_families(http: Client, area: str) -> None:
    made = []
    for number in range(4):
        made.append(make_fork(http, fresh(), (SINGULAR, PLURAL)[number % 2]))
        http.put_file(f"{area}/f", b"%d" % number)
        time.sleep(0.003)
    listed = list_forks(http, PLURAL)
    assert listed == list_forks(http, SINGULAR)
    assert [item for item in listed if item in made] == made[::-1]


WRITES: list[tuple[str, str, object, dict[str, str]]] = [
    ("PUT", "/files{area}/new", b"new", {}),
    ("PUT", "/files{area}/a", b"replaced", {}),
    ("PUT", "/engine{area}/deep/er/x", b"deep", {}),
    ("DELETE", "/files{area}/a", None, {}),
    ("DELETE", "/files{area}/d?recursive=true", None, {}),
    ("PATCH", "/files{area}/a", {"to": "{area}/moved"}, {}),
    ("PATCH", "/files{area}/d", {"to": "{area}/moved-directory"}, {}),
    ("PATCH", "/files{area}/j.json", {"x": 2}, {"Content-Type": "application/merge-patch+json"}),
    ("POST", "/files/mkdir", {"path": "{area}/made"}, {}),
    ("POST", "/files/copy", {"paths": ["{area}/d"], "destination": "{area}/copied"}, {}),
    ("POST", "/files/batch", {"operations": [{"op": "put", "path": "{area}/b", "content": "x"}]}, {}),
    ("PUT", "/links{area}/link", {"target": "{area}/a"}, {}),
    ("DELETE", "/links{area}/old-link", None, {}),
    (
        "POST",
        "/blobs/commit",
        {"files": [{"path": "{area}/c", "content_type": "a/b", "chunk_hashes": ["CHUNK"]}]},
        {},
    ),
]


@pytest.mark.parametrize("write", WRITES, ids=[f"{write[0]} {write[1]}" for write in WRITES])
def test_every_write_goes_to_the_fork_alone(
    http: Client, area: str, write: tuple[str, str, object, dict[str, str]]
) -> None:
    for name, content in (("a", b"a"), ("d/x", b"x"), ("d/y", b"y"), ("j.json", b'{"x":1}')):
        http.store(f"{area}/{name}", content)
    assert http.send_json("PUT", links(f"{area}/old-link"), {"target": f"{area}/a"}).status == 201
    chunk = blake3(b"chunk").hexdigest()
    assert http.request("PUT", f"/blobs/chunks/{chunk}", b"chunk").status in (200, 201)
    fork = make_fork(http, name := fresh())
    other = make_fork(http, fresh())
    head, below = head_version(http), tree(http, area)
    method, target, body, headers = write
    target = target.replace("{area}", area)
    if isinstance(body, (dict, list)):
        import json

        body = json.dumps(body).replace("{area}", area).replace("CHUNK", chunk).encode()
        headers = {"Content-Type": "application/json", **headers}
    response = http.request(method, target, body, headers, fork=name)
    assert response.status in (200, 201), response.body
    assert head_version(http) == head
    assert tree(http, area) == below
    changed = head_version(http, fork=name)
    assert changed != fork["root_hash"]
    assert fork_of(http, name)["root_hash"] == changed
    assert fork_of(http, name)["base"] == fork["base"]
    assert response.json().get("version", changed) == changed
    assert head_version(http, fork=other["name"]) == other["root_hash"]


def test_deleted_files_of_a_fork_do_not_show_at_head(http: Client, area: str) -> None:
    http.store(f"{area}/a", b"a")
    make_fork(http, name := fresh())
    assert http.delete(files(f"{area}/a"), fork=name).status == 200
    assert http.read(f"{area}/a") == b"a"
    assert http.get("/files/deleted", path=area).json()["items"] == []
    assert_error(http.get(files(f"{area}/a"), fork=name), 404, "NOT_FOUND")


def test_an_unknown_fork_is_404_for_reads_and_writes(http: Client, area: str) -> None:
    http.store(f"{area}/a", b"a")
    head, unknown = head_version(http), fresh("no-such")
    for method in ("GET", "PUT", "DELETE"):
        body = b"x" if method == "PUT" else None
        assert_error(http.request(method, files(f"{area}/a"), body, fork=unknown), 404, "NOT_FOUND")
    batch = {"operations": [{"op": "put", "path": f"{area}/b", "content": "x"}]}
    assert_error(http.post("/files/batch", batch, fork=unknown), 404, "NOT_FOUND")
    assert http.post("/files/batch", batch, fork=unknown).status == 404
    assert unknown not in fork_names(http)
    assert head_version(http) == head


def test_conditions_look_at_the_fork(http: Client, area: str) -> None:
    http.store(f"{area}/a", b"head")
    make_fork(http, name := fresh())
    http.put_file(f"{area}/a", b"fork", fork=name)
    at_head = f'"{blake3(b"head").hexdigest()}"'
    on_fork = f'"{blake3(b"fork").hexdigest()}"'
    assert_error(
        http.put_file(f"{area}/a", b"x", {"If-Match": at_head}, fork=name), 412, "PRECONDITION_FAILED"
    )
    assert http.put_file(f"{area}/a", b"x", {"If-Match": on_fork}, fork=name).status == 200
    assert http.get(files(f"{area}/a"), {"If-None-Match": at_head}).status == 304


def test_promoting_makes_the_fork_head_and_keeps_it(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/a", b"one")
    make_fork(http, name := fresh())
    http.put_file(f"{area}/a", b"two", fork=name)
    root = head_version(http, fork=name)
    response = http.post(family.fork(name, "/promote"), {})
    assert response.status == 200, response.body
    answer = response.json()
    assert (answer["promoted"], answer["name"], answer["version"]) == (True, name, root)
    assert head_version(http) == root
    fork = fork_of(http, name)
    assert fork["root_hash"] == fork["base"] == root
    http.put_file(f"{area}/a", b"three", fork=name)
    assert http.read(f"{area}/a") == b"two"
    assert http.post(family.fork(name, "/promote"), {}).status == 200
    assert http.read(f"{area}/a") == b"three"


def test_promoting_needs_no_body(http: Client, area: str, family: Family) -> None:
    make_fork(http, name := fresh())
    http.put_file(f"{area}/a", b"x", fork=name)
    assert http.request("POST", family.fork(name, "/promote")).status == 200
    assert http.read(f"{area}/a") == b"x"


@pytest.mark.parametrize("force", ["query", "body"])
def test_promoting_over_a_moved_head_is_409_unless_forced(
    http: Client, area: str, family: Family, force: str
) -> None:
    http.store(f"{area}/a", b"one")
    make_fork(http, name := fresh())
    http.put_file(f"{area}/a", b"two", fork=name)
    http.store(f"{area}/b", b"meanwhile")
    head = head_version(http)
    error = assert_error(http.post(family.fork(name, "/promote"), {}), 409, "CONFLICT")
    assert "force" in error["error"] or "merge" in error["error"].lower()
    assert head_version(http) == head
    if force == "query":
        response = http.post(family.fork(name, "/promote"), {}, force="true")
    else:
        response = http.post(family.fork(name, "/promote"), {"force": True})
    assert response.status == 200, response.body
    assert contents(http, area) == {f"{area}/a": b"two"}
    assert http.read(f"{area}/b", version=head) == b"meanwhile"


def test_promoting_what_is_unknown_is_404(http: Client, family: Family) -> None:
    assert_error(http.post(family.fork(fresh("no-such"), "/promote"), {}), 404, "NOT_FOUND")
    assert_error(http.delete(family.fork(fresh("no-such"))), 404, "NOT_FOUND")


def test_abandoning_frees_the_name_and_keeps_the_state(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/a", b"one")
    make_fork(http, name := fresh())
    http.put_file(f"{area}/a", b"two", fork=name)
    first = head_version(http, fork=name)
    http.put_file(f"{area}/a", b"three", fork=name)
    last = head_version(http, fork=name)
    response = http.delete(family.fork(name))
    assert response.status == 200
    assert response.json().items() >= {"abandoned": True, "name": name}.items()
    assert name not in fork_names(http)
    for method, body in (("GET", None), ("PUT", b"x")):
        assert_error(http.request(method, files(f"{area}/a"), body, fork=name), 404, "NOT_FOUND")
    assert_error(http.post(family.fork(name, "/promote"), {}), 404, "NOT_FOUND")
    assert_error(http.delete(family.fork(name)), 404, "NOT_FOUND")
    assert http.read(f"{area}/a", version=last) == b"three"
    assert http.read(f"{area}/a", version=first) == b"two"
    assert http.read(f"{area}/a") == b"one"
    again = make_fork(http, name, family)
    assert http.read(f"{area}/a", fork=name) == b"one"
    assert again["root_hash"] == head_version(http)


def test_a_name_is_abandoned_any_number_of_times(http: Client, area: str) -> None:
    name, roots = fresh(), []
    for number in range(4):
        make_fork(http, name)
        http.put_file(f"{area}/a", b"%d" % number, fork=name)
        roots.append(head_version(http, fork=name))
        assert http.delete(PLURAL.fork(name)).status == 200
    for number, root in enumerate(roots):
        assert http.read(f"{area}/a", version=root) == b"%d" % number


def test_abandoned_forks_survive_a_kill(new_server: Callable[..., Server]) -> None:
    server = new_server()
    client = server.client()
    client.store("/a", b"head")
    make_fork(client, "gone")
    make_fork(client, "here")
    client.put_file("/a", b"gone", fork="gone")
    client.put_file("/a", b"here", fork="here")
    root = head_version(client, fork="gone")
    client.delete(PLURAL.fork("gone"))
    expected = list_forks(client)
    server.kill()
    client = server.start().client()
    assert list_forks(client) == expected
    assert (client.read("/a"), client.read("/a", fork="here"), client.read("/a", version=root)) == (
        b"head",
        b"here",
        b"gone",
    )


def test_writers_on_forks_and_on_head_never_see_each_other(new_server: Callable[..., Server]) -> None:
    server = new_server("busy", "--workers", "2")
    client = server.client()
    client.store("/base", b"base")
    names = [f"fork{number}" for number in range(6)]
    for name in names:
        make_fork(client, name)
    heads: list[str] = []
    stop = threading.Event()

    def write(number: int) -> list[str]:
        place = {} if number >= len(names) else {"fork": names[number]}
        versions = []
        with Client(server.url, timeout=60) as own:
            for index in range(15):
                response = own.put_file(f"/w{number}/{index}", b"%d %d" % (number, index), **place)
                assert response.status == 201, response.body
                versions.append(response.json()["version"])
                if place:
                    assert head_version(own, **place) == versions[-1]
        return versions

    def watch() -> None:
        with Client(server.url, timeout=60) as own:
            while not stop.is_set():
                for path in tree(own):
                    assert path == "/base" or int(path.split("/")[1][1:]) >= len(names), path
                heads.append(head_version(own))

    with ThreadPoolExecutor(9) as pool:
        watching = pool.submit(watch)
        versions = list(pool.map(write, range(8)))
        stop.set()
        watching.result()
    for number, name in enumerate(names):
        expected = {f"/w{number}/{index}": b"%d %d" % (number, index) for index in range(15)}
        assert contents(client, fork=name) == {"/base": b"base", **expected}
        assert fork_of(client, name)["root_hash"] == versions[number][-1]
    at_head = {f"/w{number}/{index}" for number in (6, 7) for index in range(15)} | {"/base"}
    assert set(tree(client)) == at_head
    forked = {version for number in range(len(names)) for version in versions[number]}
    assert not forked & set(heads)
