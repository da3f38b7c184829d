"""Snapshots: names for versions, in both families of paths."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from svc_blackbox.client import Client, assert_error, files
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    PLURAL,
    SINGULAR,
    Family,
    fresh,
    head_version,
    list_snapshots,
    make_fork,
    make_snapshot,
    snapshot_names,
    tree,
)

ODD_NAMES = [
    "x",
    "n" * 200,
    "☃" * 200,
    "release 1.0",
    "ünïcode",
    "%41%2541",
    "a?b=c&d#e",
    "...",
    "quote\"and'more",
    "HEADS",
    "forks",
    "-D",
    "a\\b",
    "name.svcdb",
    "0" * 60,
]


def test_a_snapshot_names_the_present_version(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/f", b"one")
    before, name = time.time() * 1000, fresh()
    response = http.post(
        family.snapshot_routes[0], {"name": name, "metadata": {"why": ["a", 1, None, {"b": 2.5}]}}
    )
    assert response.status == 201
    snapshot = response.json()
    assert snapshot["name"] == name
    assert snapshot["root_hash"] == head_version(http)
    assert snapshot["metadata"] == {"why": ["a", 1, None, {"b": 2.5}]}
    assert before - 1000 <= snapshot["created_at"] <= time.time() * 1000 + 1000
    assert isinstance(snapshot["created_at"], int)
    assert snapshot["kind"] == "manual"
    assert "created_by" in snapshot


def test_metadata_is_empty_unless_given(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/f", b"one")
    assert make_snapshot(http, fresh(), family)["metadata"] == {}


def test_making_a_snapshot_does_not_move_head(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"one")
    before = head_version(http)
    make_snapshot(http, fresh())
    assert head_version(http) == before


def test_lists_are_newest_first_and_the_same_in_both_families(http: Client, area: str) -> None:
    made = []
    for number in range(4):
        http.store(f"{area}/f", b"%d" % number)
        made.append(make_snapshot(http, fresh(), (SINGULAR, PLURAL)[number % 2], metadata={"n": number}))
        time.sleep(0.003)
    listed = list_snapshots(http, PLURAL)
    assert listed == list_snapshots(http, SINGULAR)
    assert [item for item in listed if item in made] == made[::-1]
    times = [item["created_at"] for item in listed]
    assert times == sorted(times, reverse=True)


def test_a_new_database_has_no_snapshots_and_can_have_one(new_server: Callable[..., Server]) -> None:
    client = new_server().client()
    assert client.get("/version/snapshots").json() == []
    assert client.get("/versions/snapshots").json()["snapshots"] == []
    assert make_snapshot(client, "first")["root_hash"] == head_version(client)
    assert client.listing("/", snapshot="first")["items"] == []


def test_an_equal_root_gives_the_snapshot_that_exists(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/f", b"one")
    first = make_snapshot(http, fresh(), family, metadata={"kept": True})
    second = fresh()
    response = http.post(family.snapshot_routes[0], {"name": second, "metadata": {"lost": True}})
    assert response.status == 200
    assert response.json() == first
    assert second not in snapshot_names(http)


def test_a_root_that_comes_back_is_found_as_well(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"one", {"X-Svc-Created-At": "1000", "X-Svc-Updated-At": "1000"})
    first = make_snapshot(http, fresh())
    http.store(f"{area}/f", b"two")
    http.store(f"{area}/f", b"one", {"X-Svc-Created-At": "1000", "X-Svc-Updated-At": "1000"})
    assert head_version(http) == first["root_hash"]
    response = http.post(PLURAL.snapshot_routes[0], {"name": fresh()})
    assert (response.status, response.json()) == (200, first)


def test_a_name_that_exists_is_409_whatever_head_is(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/f", b"one")
    first = make_snapshot(http, name := fresh(), family)
    for content in (b"one", b"two"):
        if content != b"one":
            http.store(f"{area}/f", content)
        assert_error(http.post(family.snapshot_routes[0], {"name": name}), 409, "ALREADY_EXISTS")
    assert [item for item in list_snapshots(http) if item["name"] == name] == [first]


def test_only_one_of_many_takes_a_name(version_server: Server, http: Client, area: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    name = fresh()

    def create(number: int) -> int:
        with Client(version_server.url) as client:
            client.store(f"{area}/{number}", b"%d" % number)
            return client.post(PLURAL.snapshot_routes[0], {"name": name}).status

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(create, range(16)))
    assert statuses == [201] + [409] * 15
    assert snapshot_names(http).count(name) == 1


def test_deleting_frees_the_name_and_keeps_the_version(http: Client, area: str, family: Family) -> None:
    http.store(f"{area}/f", b"one")
    made = make_snapshot(http, name := fresh(), family)
    http.store(f"{area}/f", b"two")
    response = http.delete(family.snapshot(name))
    assert response.status == 200
    assert response.json().items() >= {"deleted": True, "name": name}.items()
    assert name not in snapshot_names(http)
    assert_error(http.get(files(f"{area}/f"), snapshot=name), 404, "NOT_FOUND")
    assert http.read(f"{area}/f", version=made["root_hash"]) == b"one"
    assert_error(http.delete(family.snapshot(name)), 404, "NOT_FOUND")
    again = make_snapshot(http, name, family)
    assert again["root_hash"] == head_version(http)


def test_renaming_keeps_everything_else(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"one")
    made = make_snapshot(http, old := fresh(), metadata={"a": 1})
    http.store(f"{area}/f", b"two")
    new = fresh()
    response = http.send_json("PATCH", PLURAL.snapshot(old), {"name": new})
    assert response.status == 200
    assert response.json() == {**made, "name": new}
    assert [item for item in list_snapshots(http) if item["name"] in (old, new)] == [{**made, "name": new}]
    assert http.read(f"{area}/f", snapshot=new) == b"one"
    assert_error(http.get(files(f"{area}/f"), snapshot=old), 404, "NOT_FOUND")


def test_renaming_refuses_what_making_refuses(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"one")
    make_snapshot(http, name := fresh())
    http.store(f"{area}/f", b"two")
    make_snapshot(http, taken := fresh())
    assert_error(http.send_json("PATCH", PLURAL.snapshot(name), {"name": taken}), 409, "ALREADY_EXISTS")
    assert_error(http.send_json("PATCH", PLURAL.snapshot(fresh()), {"name": fresh()}), 404, "NOT_FOUND")
    for bad in ("", "x" * 201, "a\nb", "_svc_mine", 5, None):
        assert_error(http.send_json("PATCH", PLURAL.snapshot(name), {"name": bad}), 400)
    assert_error(http.send_json("PATCH", PLURAL.snapshot(name), {}), 400)
    assert name in snapshot_names(http)


@pytest.mark.parametrize("name", ODD_NAMES, ids=[f"odd-{number}" for number in range(len(ODD_NAMES))])
def test_any_printable_name_will_do(http: Client, area: str, name: str) -> None:
    http.store(f"{area}/f", name.encode())
    made = make_snapshot(http, name)
    assert made["name"] == name
    http.store(f"{area}/f", b"later")
    assert name in snapshot_names(http)
    assert http.read(f"{area}/f", snapshot=name) == name.encode()
    renamed = http.send_json("PATCH", PLURAL.snapshot(name), {"name": name + "2"})
    if len(name) < 200:
        assert (renamed.status, renamed.json()["name"]) == (200, name + "2")
        name += "2"
    else:
        assert_error(renamed, 400)
    assert http.delete(PLURAL.snapshot(name)).status == 200
    assert name not in snapshot_names(http)


@pytest.mark.parametrize("name", ["HEAD", "0" * 64])
def test_a_name_that_means_a_version_is_refused(http: Client, area: str, name: str) -> None:
    http.store(f"{area}/f", b"one")
    assert_error(http.post(PLURAL.snapshot_routes[0], {"name": name}), 400)
    assert name not in snapshot_names(http)


@pytest.mark.parametrize(
    "name", ["a/b", "a/b/c", ".", "..", "a/..", "/", "a/", "/a", "a//b", "promote/promote"]
)
def test_a_name_that_is_no_single_segment_works_or_is_refused_clearly(
    http: Client, area: str, name: str
) -> None:
    http.store(f"{area}/f", b"one")
    response = http.post(PLURAL.snapshot_routes[0], {"name": name})
    if response.status == 400:
        assert_error(response, 400, "INVALID_INPUT")
        assert name not in snapshot_names(http)
        return
    assert response.status == 201
    http.store(f"{area}/f", b"two")
    assert name in snapshot_names(http)
    assert http.read(f"{area}/f", snapshot=name) == b"one"
    assert http.delete(PLURAL.snapshot(name)).json().items() >= {"deleted": True, "name": name}.items()
    assert name not in snapshot_names(http)
    make_fork(http, name)
    http.put_file(f"{area}/f", b"fork", fork=name)
    assert http.post(PLURAL.fork(name, "/promote"), {}).status == 200
    assert http.read(f"{area}/f") == b"fork"
    assert http.delete(PLURAL.fork(name)).status == 200


def test_two_spellings_of_a_letter_are_one_name(http: Client, area: str) -> None:
    http.store(f"{area}/f", b"one")
    composed, decomposed = "caf\u00e9-" + (suffix := fresh()), "cafe\u0301-" + suffix
    make_snapshot(http, composed)
    http.store(f"{area}/f", b"two")
    response = http.post(PLURAL.snapshot_routes[0], {"name": decomposed})
    assert response.status in (400, 409)
    assert_error(response, response.status)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x" * 201},
        {"name": "a\x00b"},
        {"name": "a\nb"},
        {"name": "a\x7fb"},
        {"name": "\ud800"},
        {"name": 5},
        {"name": None},
        {"name": ["x"]},
        {"name": "_svc_pre_gc_mine"},
        {"name": "_svc_"},
        {"name": "ok", "metadata": "text"},
        {"name": "ok", "metadata": [1]},
        [],
        "name",
        None,
    ],
)
def test_a_bad_request_is_400_and_makes_nothing(http: Client, family: Family, body: object) -> None:
    before = list_snapshots(http)
    assert_error(http.post(family.snapshot_routes[0], body), 400, "INVALID_INPUT")
    assert list_snapshots(http) == before


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"name": "x"', b"[" * 100_000])
def test_a_body_that_is_no_json_is_400(http: Client, family: Family, body: bytes) -> None:
    for target in (family.snapshot_routes[0], family.fork_routes[0], family.restore, "/versions/merge"):
        assert_error(
            http.request("POST", target, body, {"Content-Type": "application/json"}), 400, "INVALID_INPUT"
        )


def test_methods_that_a_route_does_not_take_are_405(http: Client, family: Family) -> None:
    for method, target in (
        ("PUT", family.snapshot_routes[1]),
        ("PUT", family.fork_routes[1]),
        ("POST", family.snapshot("x")),
        ("GET", family.restore),
        ("POST", family.history("/x")),
        ("GET", family.restore_path("/x")),
        ("GET", "/versions/merge"),
        ("POST", "/versions/log"),
        ("DELETE", "/versions/compare"),
    ):
        response = http.request(method, target, b"")
        assert response.status == 405, (method, target, response.status)
        assert_error(response, 405, "METHOD_NOT_ALLOWED")
        assert response["Allow"]


def test_snapshots_survive_a_kill(new_server: Callable[..., Server]) -> None:
    server = new_server()
    client = server.client()
    made = []
    for number in range(5):
        client.store("/f", b"%d" % number)
        made.append(make_snapshot(client, f"s{number}", metadata={"number": number}))
        time.sleep(0.002)
    server.kill()
    client = server.start().client()
    assert list_snapshots(client) == made[::-1]
    for number in range(5):
        assert client.read("/f", snapshot=f"s{number}") == b"%d" % number
    assert tree(client, snapshot="s4") == tree(client)
