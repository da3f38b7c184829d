"""The routes of both families answer as specified, and whatever is sent gets an answer in order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ..conftest import Http, user  # noqa: TID252

FAMILIES = ["version", "versions"]
MAKE = {"version": "/version/snapshot", "versions": "/versions/snapshots"}
LIST = {"version": "/version/snapshots", "versions": "/versions/snapshots"}
MAKE_FORK = {"version": "/version/fork", "versions": "/versions/forks"}
LIST_FORKS = {"version": "/version/forks", "versions": "/versions/forks"}


def listed(http: Http, family: str, what: str = "snapshots") -> list[Any]:
    answer = http.get(f"/{family}/{what}")
    assert answer.status_code == 200
    found: list[Any] = answer.json if family == "version" else answer.json[what]
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_the_life_of_a_snapshot(http: Http, family: str) -> None:
    http.write({"/a": "1"})
    made = http.post(MAKE[family], {"name": "one", "metadata": {"k": [1, None]}})
    assert made.status_code == 201
    assert made.json == {
        "name": "one",
        "root_hash": http.database.head().root.hex(),
        "created_at": made.json["created_at"],
        "metadata": {"k": [1, None]},
        "kind": "manual",
        "created_by": "00000000-0000-0000-0000-000000000000",
    }
    assert http.post(MAKE[family], {"name": "one"}).status_code == 409
    assert http.post(MAKE[family], {"name": "one"}).json["code"] == "ALREADY_EXISTS"
    again = http.post(MAKE[family], {"name": "two"})
    assert (again.status_code, again.json) == (200, made.json)
    assert listed(http, family) == [made.json]
    assert http.get(f"{MAKE[family]}/one").json == made.json
    http.write({"/a": "2"})
    restored = http.post(f"/{family}/restore", {"name": "one"})
    assert restored.status_code == 200
    assert restored.json["restored"] is True
    assert restored.json["name"] == "one"
    assert restored.json["version"] == made.json["root_hash"] == restored.headers["x-svc-version"]
    assert http.files() == {"/a": "1"}
    assert [one["kind"] for one in listed(http, family)] == ["automatic", "manual"]
    assert listed(http, family)[0]["name"] == restored.json["auto_snapshot"]
    gone = http.delete(f"{MAKE[family]}/one")
    assert (gone.status_code, gone.json) == (200, {"deleted": True, "name": "one"})
    for answer in (http.delete(f"{MAKE[family]}/one"), http.post(f"/{family}/restore", {"name": "one"})):
        assert (answer.status_code, answer.json["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_life_of_a_fork(http: Http, family: str) -> None:
    http.write({"/a": "1"})
    http.post("/versions/snapshots", {"name": "one"})
    root = http.database.head().root.hex()
    http.write({"/a": "2"})
    made = http.post(MAKE_FORK[family], {"name": "draft", "base": "one"})
    assert made.status_code == 201
    assert made.json["name"] == "draft"
    assert made.json["root_hash"] == made.json["base"] == root
    assert http.post(MAKE_FORK[family], {"name": "draft"}).status_code == 409
    assert http.post(MAKE_FORK[family], {"name": "x", "base": "none"}).status_code == 404
    http.write({"/a": "3"}, "draft")
    assert listed(http, family, "forks")[0]["root_hash"] != root
    refused = http.post(f"{MAKE_FORK[family]}/draft/promote", {})
    assert (refused.status_code, refused.json["code"]) == (409, "CONFLICT")
    promoted = http("POST", f"{MAKE_FORK[family]}/draft/promote", query_string="force=true")
    assert promoted.status_code == 200
    assert promoted.json["promoted"] is True
    assert promoted.json["name"] == "draft"
    assert promoted.json["version"] == http.database.head().root.hex()
    assert http.files() == {"/a": "3"}
    gone = http.delete(f"{MAKE_FORK[family]}/draft")
    assert (gone.status_code, gone.json["abandoned"], gone.json["name"]) == (200, True, "draft")
    assert listed(http, family, "forks") == []
    assert http.delete(f"{MAKE_FORK[family]}/draft").status_code == 404
    (left,) = http("GET", "/versions/forks", query_string="abandoned=true").json["forks"]
    assert (left["name"], left["root_hash"]) == ("draft", gone.json["root_hash"])
    assert http("POST", f"{MAKE_FORK[family]}/draft/promote").status_code == 404


@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_is_restored(http: Http, family: str) -> None:
    http.write({"/d/a": "old", "/b": "1"})
    version = http.database.head().root.hex()
    http.post("/versions/snapshots", {"name": "one"})
    http.write({"/d/a": "newer"})
    route = f"/{family}/file-restore/d/a"
    answer = http.post(route, {"snapshot": "one", "version": "ff" * 32})
    assert answer.status_code == 200
    assert answer.json["restored"] is True
    assert answer.json["path"] == "/d/a"
    assert answer.json["from_snapshot"] == "one"
    assert answer.json["size"] == 3
    assert answer.json["auto_snapshot"].startswith("pre-restore-")
    assert answer.json["version"] == http.database.head().root.hex()
    http.write({"/d/a": "newest"})
    by_hash = http.post(route, {"version": version})
    assert (by_hash.status_code, by_hash.json["from_snapshot"]) == (200, None)
    assert http.files()["/d/a"] == "old"
    for body, status in (
        ({}, 400),
        ({"version": "xyz"}, 400),
        ({"version": "ff" * 32}, 404),
        ({"snapshot": "none"}, 404),
    ):
        assert http.post(route, body).status_code == status
    assert http.post(f"/{family}/file-restore/none", {"snapshot": "one"}).status_code == 404
    assert http.post(f"/{family}/file-restore/.svc-system/x", {"snapshot": "one"}).status_code == 404
    assert http.post(f"/{family}/file-restore/", {"snapshot": "one"}).status_code == 400


@pytest.mark.parametrize(
    "name", ["a/b", "50%", "a%2Fb", "ä b", "日" * 200, "a?b#c", ".hidden", "promote", "x/promote"]
)
def test_every_name_can_be_used_in_a_url(http: Http, name: str) -> None:
    from urllib.parse import quote

    http.write({"/a": name})
    url = quote(name, safe="/")
    assert http.post("/versions/snapshots", {"name": name}).status_code == 201
    assert http.get(f"/versions/snapshots/{url}").json["name"] == name
    renamed = http.send("PATCH", f"/versions/snapshots/{url}", {"name": f"{name[:150]}!"})
    assert renamed.json["name"] == f"{name[:150]}!"
    assert http.delete(f"/version/snapshot/{quote(name[:150] + '!', safe='')}").status_code == 200
    assert http.post("/versions/forks", {"name": name}).status_code == 201
    assert http.get(f"/version/fork/{url}").json["name"] == name
    assert http("POST", f"/versions/forks/{url}/promote").status_code == 200
    assert http.delete(f"/versions/forks/{url}").json["name"] == name


def test_a_snapshot_of_a_fork_or_a_version(http: Http) -> None:
    http.write({"/a": "1"})
    first = http.database.head().root.hex()
    http.write({"/a": "2"})
    http.post("/versions/forks", {"name": "f"})
    http.write({"/a": "3"}, "f")
    assert http.post("/versions/snapshots", {"name": "v", "version": first}).json["root_hash"] == first
    made = http.post("/versions/snapshots", {"name": "of-f", "fork": "f"})
    assert made.json["root_hash"] == http.get("/versions/forks/f").json["root_hash"]
    assert http.post("/versions/snapshots", {"name": "x", "fork": "f", "version": first}).status_code == 400
    assert http.post("/versions/snapshots", {"name": "x", "fork": "none"}).status_code == 404
    assert http.post("/versions/snapshots", {"name": "x", "version": "12"}).status_code == 400


def test_merge_answers_what_it_did_and_lists_conflicts(http: Http) -> None:
    http.write({"/a": "0", "/b": "0"})
    http.post("/versions/forks", {"name": "f"})
    base = http.database.head().root.hex()
    http.write({"/a": "1"})
    http.write({"/b": "2", "/c": "2"}, "f")
    done = http.post("/versions/merge", {"from": "f", "into": "HEAD", "strategy": "fail", "message": "m"})
    assert done.status_code == 200
    assert done.json["merged"] is True
    assert done.json["base"] == base
    assert done.json["changes"] == {"added": 1, "modified": 1, "deleted": 0}
    assert done.json["fast_forward"] is False
    assert done.json["version"] == done.headers["x-svc-version"] == http.database.head().root.hex()
    assert http.database.commit(http.database.head().sequence).transactions[0].message == "m"
    http.write({"/a": "head"})
    http.write({"/a": "fork"}, "f")
    refused = http.post("/versions/merge", {"from": "f"})
    assert (refused.status_code, refused.json["code"]) == (409, "CONFLICT")
    assert refused.json["conflict_count"] == 1
    (conflict,) = refused.json["conflicts"]
    assert (conflict["path"], conflict["kind"]) == ("/a", "modify_modify")
    assert conflict["ours"]["size"] == conflict["theirs"]["size"] == 4
    dry = http.post("/versions/merge", {"from": "f", "strategy": "theirs", "dry_run": True})
    assert (dry.json["merged"], dry.json["conflicts_resolved"]) == (False, 1)
    assert http.files()["/a"] == "head"
    assert http.post("/versions/merge", {"from": "f", "strategy": "theirs"}).status_code == 200
    assert http.files()["/a"] == "fork"
    for body, status in (
        ({"from": "none"}, 404),
        ({"from": "f", "into": "none"}, 404),
        ({"from": "f", "into": "f"}, 400),
        ({"from": "f", "strategy": "guess"}, 400),
        ({}, 400),
    ):
        assert http.post("/versions/merge", body).status_code == status


def test_lifecycle_settings_are_shown_and_changed(http: Http) -> None:
    default = {
        "snapshot_writes_enabled": True,
        "snapshot_retention": {"auto_months": 0, "manual_months": 0},
        "snapshot_schedule": {"hourly": 0, "daily": 0, "weekly": 0},
    }
    assert http.get("/system/lifecycle").json == default
    changed = http.send("PUT", "/system/lifecycle", {"snapshot_writes_enabled": False})
    assert (changed.status_code, changed.json) == (200, {**default, "snapshot_writes_enabled": False})
    refused = http.post("/version/snapshot", {"name": "x"})
    assert (refused.status_code, refused.json["setting"]) == (409, "snapshot_writes_enabled")
    for wrong in ({"snapshot_retention": {"auto_months": -1}}, {"snapshot_retention": 3}, {"other": 1}, []):
        assert http.send("PUT", "/system/lifecycle", wrong).status_code == 400
    whole = {
        "snapshot_writes_enabled": True,
        "snapshot_retention": {"auto_months": 1, "manual_months": 2},
        "snapshot_schedule": {"hourly": 24, "daily": 7, "weekly": 0},
    }
    assert http.send("PUT", "/system/lifecycle", whole).json == whole == http.get("/system/lifecycle").json


@pytest.mark.parametrize("name", ["", "x" * 201, "a\u0000b", "_svc_x", "a//b", "..", "\ud800", None, 7, {}])
@pytest.mark.parametrize(
    "route", ["/version/snapshot", "/versions/snapshots", "/version/fork", "/versions/forks"]
)
def test_what_is_no_name_is_refused(http: Http, route: str, name: Any) -> None:
    answer = http.post(route, {"name": name})
    assert (answer.status_code, answer.json["code"]) == (400, "INVALID_INPUT")


def test_metadata_has_a_limit(http: Http) -> None:
    answer = http.post("/versions/snapshots", {"name": "x", "metadata": {"x": "y" * 70_000}})
    assert (answer.status_code, answer.json["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert http.post("/versions/snapshots", {"name": "x", "metadata": [1]}).status_code == 400
    deep = b'{"name": "x", "metadata": {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}}"
    assert http.post("/versions/snapshots", deep).status_code in (201, 400)
    assert http.get("/versions/snapshots").status_code == 200


def test_what_no_route_takes_is_405_or_404(http: Http) -> None:
    assert http.delete("/versions/snapshots").status_code == 405
    assert http.get("/version/snapshot").status_code == 405
    assert http.get("/version/restore").status_code == 405
    assert http("POST", "/versions/forks/f").status_code == 404
    assert http("POST", "/versions/forks/promote").status_code == 404
    assert http.get("/versions/forks/").status_code == 404


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3)
    ),
    max_leaves=6,
)
BODIES = st.dictionaries(
    st.sampled_from(
        ["name", "metadata", "fork", "version", "base", "from", "into", "strategy", "snapshot", "force",
         "snapshot_writes_enabled", "snapshot_retention", "dry_run", "message"]
    ),
    JSON,
    max_size=4,
)  # fmt: skip
ROUTES = [
    ("POST", "/version/snapshot"),
    ("POST", "/version/fork"),
    ("POST", "/version/restore"),
    ("POST", "/version/file-restore/a"),
    ("POST", "/versions/forks/f/promote"),
    ("PATCH", "/versions/snapshots/s"),
    ("POST", "/versions/merge"),
    ("PUT", "/system/lifecycle"),
]


@settings(max_examples=120)
@given(route=st.sampled_from(ROUTES), body=BODIES | JSON)
def test_nothing_that_is_sent_is_a_failure_of_the_server(
    http: Http, route: tuple[str, str], body: Any
) -> None:
    if http.database.head().sequence < 5:
        http.write({"/a": "1"})
        http.post("/versions/snapshots", {"name": "s"})
        http.post("/versions/forks", {"name": "f"})
    answer = http.send(*route, body)
    assert answer.status_code < 500
    if answer.status_code >= 400:
        assert {"error", "code"} <= set(answer.json)


def test_conflicts_that_the_caller_may_not_see_are_not_counted(http: Http) -> None:
    http.write({"/mine/a": "0", "/hidden/b": "0"})
    http.post("/versions/forks", {"name": "f"})
    http.post("/versions/forks", {"name": "g"})
    for fork in ("f", "g"):
        http.write({"/mine/a": fork, "/hidden/b": fork}, fork)
    http.become(user({"/mine": "crudl"}))
    refused = http.post("/versions/merge", {"from": "f", "into": "g"})
    assert (refused.status_code, refused.json["conflict_count"]) == (409, 1)
    assert [one["path"] for one in refused.json["conflicts"]] == ["/mine/a"]
    assert "both changed paths;" in refused.json["error"]
    kept = http.post("/versions/merge", {"from": "f", "into": "g", "strategy": "ours"})
    assert kept.json["conflicts_resolved"] == 1
