"""Who may do what: reading is everyone's, moving HEAD is root's, and scoped keys see nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from svc.pipeline import AccessKind, access_of
from svc.plugin import ROOT_IDENTITY, Identity, ScopedRule
from svc.plugins import Plugins

from ..conftest import Http, scoped_root, user  # noqa: TID252

USER = user({"/": "crudl"})

ROOT_ONLY = [
    ("POST", "/version/restore", {"name": "s"}),
    ("DELETE", "/version/snapshot/s", None),
    ("POST", "/version/fork/f/promote", {}),
    ("DELETE", "/version/fork/f", None),
    ("POST", "/version/file-restore/a", {"snapshot": "s"}),
    ("POST", "/versions/restore", {"name": "s"}),
    ("DELETE", "/versions/snapshots/s", None),
    ("PATCH", "/versions/snapshots/s", {"name": "t"}),
    ("POST", "/versions/forks/f/promote", {}),
    ("DELETE", "/versions/forks/f", None),
    ("POST", "/versions/file-restore/a", {"snapshot": "s"}),
    ("POST", "/versions/merge", {"from": "f"}),
    ("PUT", "/system/lifecycle", {"snapshot_writes_enabled": False}),
]


@pytest.fixture
def versions(http: Http) -> Http:
    http.write({"/a": "1", "/closed/b": "1"})
    http.post("/versions/snapshots", {"name": "s"})
    http.post("/versions/forks", {"name": "f"})
    http.write({"/a": "2"})
    http.write({"/c": "f", "/closed/b": "f"}, "f")
    return http


@pytest.mark.parametrize(("method", "path", "body"), ROOT_ONLY)
def test_what_moves_head_or_deletes_is_roots_alone(versions: Http, method: str, path: str, body: Any) -> None:
    before = versions.database.head()
    for who in (USER, scoped_root(("/**", "crudlify"))):
        versions.become(who)
        answer = versions.send(method, path, body) if body is not None else versions(method, path)
        # A key that is narrowed hears of merging as of something that is not there.
        expected = {404} if who.rules and path == "/versions/merge" else {403}
        assert answer.status_code in expected
    assert versions.database.head() == before


@pytest.mark.parametrize(
    "path", ["/version/snapshots", "/versions/forks", "/versions/snapshots/s", "/system/lifecycle"]
)
def test_everyone_may_see_which_versions_have_a_name(versions: Http, path: str) -> None:
    versions.become(USER)
    assert versions.get(path).status_code == 200


SHARE_LINK = Identity(None, "share", key_id="link", rules=(ScopedRule("/a", "-r--l---"),))


@pytest.mark.parametrize(
    "path",
    [
        "/version/snapshots",
        "/versions/snapshots",
        "/version/forks",
        "/versions/forks",
        "/versions/forks?abandoned=1",
    ],
)
def test_a_share_link_lists_no_snapshots_and_no_forks(versions: Http, path: str) -> None:
    versions.become(SHARE_LINK)
    assert versions.get(path).status_code == 404


@pytest.mark.parametrize(
    "path", ["/version/snapshot/", "/versions/snapshots/", "/version/fork/", "/versions/forks/"]
)
def test_to_a_share_link_a_snapshot_looks_as_if_there_were_none(versions: Http, path: str) -> None:
    versions.become(SHARE_LINK)
    answers = [versions.get(path + name) for name in ("s", "f", "none")]
    assert {one.status_code for one in answers} == {404}
    assert len({one.json["error"] for one in answers}) == 1


def test_a_user_makes_snapshots_and_forks_and_a_scoped_key_does_not(versions: Http) -> None:
    versions.become(USER)
    assert versions.post("/versions/snapshots", {"name": "mine"}).json["created_by"] == USER.user_id
    assert versions.post("/versions/forks", {"name": "mine"}).status_code == 201
    versions.become(scoped_root(("/**", "crudlify")))
    for route in ("/version/snapshot", "/versions/snapshots", "/version/fork", "/versions/forks"):
        assert versions.post(route, {"name": "not"}).status_code == 404
    kinds = ("snapshots", "forks")
    assert sum(len(list(versions.database.refs(kind))) for kind in kinds) == 4


@pytest.mark.parametrize(
    "route", ["/version/snapshot", "/versions/snapshots", "/version/fork", "/versions/forks"]
)
def test_who_may_change_nothing_makes_neither_snapshots_nor_forks(versions: Http, route: str) -> None:
    before = versions.database.head()
    for flags in ({}, {"/": "rl"}, {"/": "rlif", "/closed": "y"}):
        versions.become(user(flags))
        assert versions.post(route, {"name": "mine"}).status_code == 403
    assert versions.database.head() == before
    versions.become(user({"/closed/deep": "d"}))
    assert versions.post(route, {"name": "mine"}).status_code == 201


def test_a_user_merges_into_a_fork_only_what_the_user_may_change(versions: Http) -> None:
    versions.post("/versions/forks", {"name": "g"})
    body = {"from": "f", "into": "g"}
    versions.become(user({"/": "crudl", "/closed": ""}))
    refused = versions.post("/versions/merge", body)
    assert refused.status_code == 403
    assert "closed" not in refused.text
    versions.become(user({"/": "rl"}))
    assert versions.post("/versions/merge", body).json["path"] == "/c"
    versions.become(USER)
    assert versions.post("/versions/merge", body).status_code == 200
    assert versions.files("g") == {"/a": "2", "/c": "f", "/closed/b": "f"}


def test_a_merge_that_empties_a_directory_needs_the_right_to_delete_what_is_in_it(versions: Http) -> None:
    versions.write({"/d/x": "1", "/d/sub/y": "2"})
    for name in ("emptied", "full"):
        versions.post("/versions/forks", {"name": name})
    with versions.database.transaction(ref="forks/emptied") as transaction:
        transaction.delete(("d",), recursive=True)
        transaction.mkdir(("d",))
    body = {"from": "emptied", "into": "full"}
    before = versions.files("full")
    versions.become(user({"/": "crudl", "/d/sub": "crul"}))
    refused = versions.post("/versions/merge", body)
    assert refused.status_code == 403, refused.text
    assert versions.files("full") == before
    versions.become(user({"/": "crudl"}))
    assert versions.post("/versions/merge", body).status_code == 200
    assert not any(path.startswith("/d/") for path in versions.files("full"))


BESIDE = [
    ({"/d/secret": ""}, 403),  # May not be read where it comes from.
    ({"/d (theirs)/secret": ""}, 403),  # May not be made where it goes.
    ({"/d (theirs)": "rudl"}, 403),
    ({"/": "crudl"}, 403),  # Holds configuration.
    ({}, 200),
]


@pytest.mark.parametrize(("flags", "status"), BESIDE)
def test_a_side_that_comes_beside_the_other_needs_the_rights_of_a_copy(
    versions: Http, flags: dict[str, str], status: int
) -> None:
    versions.post("/versions/forks", {"name": "mine"})
    files = {"/d/open": "1", "/d/secret/plan": "2", "/d/.svc-config/settings": "3"}
    versions.write(files)
    versions.write({"/d": "file"}, "mine")
    before = versions.files("mine")
    versions.become(user({"/": "crudly"} | flags))
    body = {"from": "HEAD", "into": "mine", "resolutions": [{"path": "/d", "take": "both"}]}
    answer = versions.post("/versions/merge", body)
    assert answer.status_code == status, answer.text
    assert "secret" not in answer.text
    came = {path.replace("/d/", "/d (theirs)/"): text for path, text in files.items()}
    assert versions.files("mine") == before | (came if status == 200 else {})


@pytest.mark.parametrize(("flags", "status"), [({"/d (theirs)": "rudl"}, 403), ({"/d/x": ""}, 200)])
def test_a_file_that_comes_beside_a_directory_is_made_there(
    versions: Http, flags: dict[str, str], status: int
) -> None:
    versions.post("/versions/forks", {"name": "mine"})
    versions.write({"/d": "file"})
    versions.write({"/d/x": "1"}, "mine")
    versions.become(user({"/": "crudl"} | flags))
    body = {"from": "HEAD", "into": "mine", "resolutions": [{"path": "/d", "take": "both"}]}
    assert versions.post("/versions/merge", body).status_code == status
    assert ("/d (theirs)" in versions.files("mine")) == (status == 200)


def test_what_was_deleted_comes_beside_only_to_those_who_may_see_it(versions: Http) -> None:
    versions.post("/versions/forks", {"name": "mine"})
    versions.write({"/d": "file"}, "mine")
    versions.write({"/d/x": "1"})
    versions.post("/versions/snapshots", {"name": "was"})
    versions.write({"/d": None})
    body = {"from": "was", "into": "mine", "resolutions": [{"path": "/d", "take": "both"}]}
    versions.become(user({"/": "crudl", "/d/x": "crul"}))
    assert versions.post("/versions/merge", body).status_code == 403
    versions.become(USER)
    assert versions.post("/versions/merge", body).status_code == 200
    assert versions.files("mine")["/d (theirs)/x"] == "1"


def test_conflicts_are_shown_to_those_who_may_read_the_path(versions: Http) -> None:
    versions.post("/versions/forks", {"name": "g"})
    versions.write({"/closed/b": "g", "/c": "g"}, "g")
    versions.become(user({"/": "crudl", "/closed": ""}))
    refused = versions.post("/versions/merge", {"from": "f", "into": "g"})
    assert refused.status_code == 409
    assert [one["path"] for one in refused.json["conflicts"]] == ["/c"]
    versions.become(ROOT_IDENTITY)
    refused = versions.post("/versions/merge", {"from": "f", "into": "g"})
    assert [one["path"] for one in refused.json["conflicts"]] == ["/c", "/closed/b"]


def test_no_route_is_public(plugins: Plugins) -> None:
    for route in plugins.registries.routes.of_plugin("versions"):
        for responder in route.value.responders().values():
            access = access_of(responder)
            assert access is not None
            assert access.kind is not AccessKind.PUBLIC
