"""Sharing with users and groups: what is granted, listed and taken back, and who may."""

from __future__ import annotations

import base64
import threading
from typing import Any

import pytest

from svc.plugin import ROOT_USER_ID

from ..conftest import Http  # noqa: TID252

READ = "-r--l---"
WRITE = "crudl---"


@pytest.fixture
def shared(http: Http) -> Http:
    http.write("/plans/a", "/plans/deep/b", "/other/c")
    return http


def test_users_by_id_or_name_and_groups_get_what_is_shared_in_one_commit(shared: Http) -> None:
    ann, ann_token = shared.user("ann")
    _, bob_token = shared.user("Bob")
    eve, eve_token = shared.user("eve")
    shared.group("staff", eve)
    before = shared.database.head().sequence
    body = {"paths": ["/plans", "other/c"], "users": [ann, "bob"], "groups": ["Staff"], "permissions": READ}
    answer = shared.post("/files/share", body)
    assert answer.status_code == 200, answer.text
    assert shared.database.head().sequence == before + 1
    assert answer.json["paths"] == ["/plans", "/other/c"]
    assert [user["username"] for user in answer.json["users"]] == ["ann", "Bob"]
    assert answer.json["groups"] == ["staff"]
    for token in (ann_token, bob_token, eve_token):
        assert (shared.may(token, "/plans"), shared.may(token, "/other/c")) == (READ, READ)


def test_who_shared_what_with_whom_and_when_is_listed(shared: Http) -> None:
    ann, _ = shared.user("ann")
    shared.group("staff")
    body = {"paths": ["/plans"], "users": ["ann"], "groups": ["staff"], "permissions": READ}
    shared.post("/files/share", body)
    listed = shared.get("/files/shares", params={"path": "/plans"}).json
    assert (listed["path"], listed["has_more"], listed["next_cursor"]) == ("/plans", False, None)
    by_user = next(item for item in listed["shares"] if item["user_id"] == ann)
    by_group = next(item for item in listed["shares"] if item["group"] == "staff")
    assert (by_user["username"], by_user["group"], by_user["permissions"]) == ("ann", None, READ)
    assert (by_group["user_id"], by_group["username"]) == (None, None)
    assert by_user["created_by"] == ROOT_USER_ID
    assert by_user["created_at"] <= shared.database.commit(shared.database.head().sequence).time_ms
    pages, after = [], None
    while True:
        options = {"path": "/plans", "limit": 1, **({} if after is None else {"after": after})}
        page = shared.get("/files/shares", params=options).json
        pages += page["shares"]
        after = page["next_cursor"]
        if after is None:
            break
    assert pages == listed["shares"]
    assert shared.get("/files/shares", params={"path": "/plans/deep"}).json["shares"] == []


def test_sharing_again_replaces_and_unsharing_takes_it_back(shared: Http) -> None:
    _, token = shared.user("ann")
    body: dict[str, Any] = {"paths": ["/plans"], "users": ["ann"]}
    shared.post("/files/share", {**body, "permissions": READ})
    shared.post("/files/share", {**body, "permissions": WRITE})
    assert shared.may(token, "/plans") == WRITE
    assert len(shared.get("/files/shares", params={"path": "/plans"}).json["shares"]) == 1
    gone = shared.send("DELETE", "/files/shares", body)
    assert (gone.status_code, gone.json["removed"]) == (200, 1)
    assert shared.may(token, "/plans") == ""
    assert shared.send("DELETE", "/files/shares", body).status_code == 404


def test_what_is_denied_at_the_same_place_outlives_sharing_and_unsharing(shared: Http) -> None:
    ann, token = shared.user("ann")
    denied = {"path": "/plans", "group": f"user:{ann}", "deny": "---d----"}
    assert shared.post("/system/grants", denied).status_code == 201
    body: dict[str, Any] = {"paths": ["/plans"], "users": ["ann"]}
    shared.post("/files/share", {**body, "permissions": WRITE})
    assert shared.may(token, "/plans") == "cru-l---"
    assert shared.send("DELETE", "/files/shares", body).status_code == 200
    (left,) = shared.get("/files/shares", params={"path": "/plans"}).json["shares"]
    assert (left["permissions"], left["deny"]) == ("--------", "---d----")


def test_a_share_of_a_path_that_is_gone_can_be_taken_back(shared: Http) -> None:
    shared.user("ann")
    body: dict[str, Any] = {"paths": ["/other/c"], "users": ["ann"]}
    shared.post("/files/share", {**body, "permissions": READ})
    with shared.database.transaction() as transaction:
        transaction.delete(("other", "c"))
    assert shared.send("DELETE", "/files/shares", body).json["removed"] == 1


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"paths": ["/missing"]}, 404, None),
        ({"paths": ["/plans", "/.svc-system/users"]}, 404, None),
        ({"paths": ["/link"]}, 400, "paths"),
        ({"paths": ["/a/../b"]}, 400, None),
        ({"paths": []}, 400, "paths"),
        ({"paths": "/plans"}, 400, "paths"),
        ({"users": []}, 400, "users"),
        ({"users": ["nobody"]}, 404, "users"),
        ({"users": ["\udc80"]}, 400, None),
        ({"groups": ["nothing"]}, 404, None),
        ({"groups": ["user:7f0a2b1c-0000-4000-8000-000000000001"]}, 404, None),
        ({"permissions": "r"}, 400, "permissions"),
        ({"permissions": "--------"}, 400, "permissions"),
        ({"permissions": "lr------"}, 400, "permissions"),
        ({"more": 1}, 400, None),
        ({"paths": [f"/plans/{number}" for number in range(1_001)]}, 413, "paths"),
        ({"users": [f"user {number}" for number in range(1_001)]}, 413, "paths"),
    ],
)
def test_what_cannot_be_shared_is_refused_whole(
    shared: Http, change: dict[str, Any], status: int, field: str | None
) -> None:
    shared.user("ann")
    with shared.database.transaction() as transaction:
        transaction.link(("link",), "/plans")
    body = {"paths": ["/plans"], "users": ["ann"], "permissions": READ, **change}
    before = shared.database.head().sequence
    answer = shared.post("/files/share", body)
    assert (answer.status_code, answer.json.get("field")) == (status, field), answer.text
    assert shared.database.head().sequence == before


def test_only_root_shares_and_not_by_a_scoped_key(shared: Http) -> None:
    _, ann = shared.user("ann")
    scoped = shared.token_of(shared.key_of(ROOT_USER_ID, [{"/plans/**": "crudlify"}]))
    body = {"paths": ["/plans"], "users": ["ann"], "permissions": READ}
    for token, status in ((ann, 403), (scoped, 403), (None, 401)):
        assert shared.post("/files/share", body, token=token).status_code == status
        assert shared.get("/files/shares", params={"path": "/plans"}, token=token).status_code == status
        assert shared.send("DELETE", "/files/shares", body, token=token).status_code == status
    assert shared.get("/files/shares").status_code == 400


def test_everyone_finds_what_is_shared_with_them_in_pages(shared: Http) -> None:
    ann, token = shared.user("ann")
    _, stranger = shared.user("stranger")
    shared.group("staff", ann)
    shared.post("/files/share", {"paths": ["/plans/deep/b"], "groups": ["staff"], "permissions": READ})
    shared.post("/files/share", {"paths": ["/plans", "/other/c"], "users": ["ann"], "permissions": WRITE})
    with shared.database.transaction() as transaction:
        transaction.delete(("other", "c"))
    whole = shared.get("/files/shared-with-me", token=token).json
    assert {item["path"]: item["group"] for item in whole["items"]} == {
        "/plans/deep/b": "staff",
        "/plans": f"user:{ann}",
    }
    assert whole["has_more"] is False
    found, after, pages = [], None, 0
    while True:
        params = {"limit": 1, **({} if after is None else {"after": after})}
        page = shared.get("/files/shared-with-me", params=params, token=token).json
        found += page["items"]
        pages += 1
        after = page["next_cursor"]
        if after is None:
            break
    assert found == whole["items"]
    assert pages >= 3
    assert shared.get("/files/shared-with-me", token=stranger).json["items"] == []
    assert shared.get("/files/shared-with-me", token=None).status_code == 401
    for cursor in ("x", "é", "W10", "//", "\u2028"):
        refused = shared.get("/files/shared-with-me", params={"after": cursor}, token=token)
        assert (refused.status_code, refused.json["field"]) == (400, "after")


def test_a_key_with_rules_finds_no_more_than_it_may_see(shared: Http) -> None:
    ann, _ = shared.user("ann")
    shared.post("/files/share", {"paths": ["/plans", "/other/c"], "users": ["ann"], "permissions": READ})
    scoped = shared.token_of(shared.key_of(ann, [{"/other/**": "-r------"}]))
    items = shared.get("/files/shared-with-me", token=scoped).json["items"]
    assert [(item["path"], item["effective_permissions"]) for item in items] == [("/other/c", "-r------")]


def test_pages_do_not_count_grants_that_a_key_must_not_see(shared: Http) -> None:
    ann, whole = shared.user("ann")
    scoped = shared.token_of(shared.key_of(ann, [{"/other/**": "-r------"}]))

    def pages(token: str) -> list[list[str]]:
        found: list[list[str]] = []
        query = {"limit": "1"}
        while True:
            page = shared.get("/files/shared-with-me", params=query, token=token).json
            found.append([item["path"] for item in page["items"]])
            if not page["has_more"]:
                return found
            query["after"] = page["next_cursor"]

    shared.post("/files/share", {"paths": ["/other/c"], "users": ["ann"], "permissions": READ})
    before = pages(scoped)
    assert before == pages(whole) == [["/other/c"], []]
    shared.post("/files/share", {"paths": ["/plans", "/plans/deep"], "users": ["ann"], "permissions": READ})
    assert pages(scoped) == before
    assert len(pages(whole)) == 4


def test_a_cursor_tells_nothing_of_a_grant_that_a_key_must_not_see(
    shared: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_sharing.grants._MOST_LOOKED_AT", 1)
    ann, whole = shared.user("ann")
    shared.group("board-of-directors", ann)
    shared.post("/files/share", {"paths": ["/plans"], "groups": ["board-of-directors"], "permissions": READ})
    shared.post("/files/share", {"paths": ["/other/c"], "users": ["ann"], "permissions": READ})
    scoped = shared.token_of(shared.key_of(ann, [{"/other/**": "-r------"}]))
    first = shared.get("/files/shared-with-me", params={"limit": 1}, token=scoped).json
    assert (first["items"], first["has_more"]) == ([], True)
    cursor = first["next_cursor"]
    (grant,) = shared.get("/files/shares", params={"path": "/plans"}).json["shares"]
    assert shared.get("/files/shared-with-me", params={"limit": 1}, token=whole).json["next_cursor"] == cursor
    told = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    for secret in (grant["grant_id"], grant["grant_id"][:8], "board", "plans"):
        assert secret not in cursor
        assert secret.encode() not in told
    monkeypatch.undo()
    after = shared.get("/files/shared-with-me", params={"after": cursor}, token=scoped).json
    assert [item["path"] for item in after["items"]] == ["/other/c"]
    flipped = cursor[:-4] + ("AAAA" if cursor[-4:] != "AAAA" else "BBBB")
    for wrong in (flipped, cursor[:-2], cursor * 2, ""):
        refused = shared.get("/files/shared-with-me", params={"after": wrong}, token=scoped)
        assert refused.status_code == 400, wrong


def test_shares_that_are_made_at_once_all_last(shared: Http) -> None:
    shared.group("staff")
    shared.write(*(f"/many/{number}" for number in range(8)))
    answers: list[int] = []

    def share(number: int) -> None:
        body = {"paths": [f"/many/{number}"], "groups": ["staff"], "permissions": READ}
        answers.append(shared.post("/files/share", body).status_code)

    threads = [threading.Thread(target=share, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 8
    for number in range(8):
        assert len(shared.get("/files/shares", params={"path": f"/many/{number}"}).json["shares"]) == 1
