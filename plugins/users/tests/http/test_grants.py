"""``/system/grants`` and ``/system/access``: who may do what, and why."""

from __future__ import annotations

from typing import Any

import pytest

from svc.plugin import ROOT_USER_ID, Condition

from ..conftest import NOBODY, Http, in_parallel  # noqa: TID252

READ = "-r--l---"


def test_a_grant_is_made_replaced_listed_and_taken_back(http: Http) -> None:
    http.group("Staff")
    made = http.post("/system/grants", {"path": "a//b/", "group": "staff", "allow": READ})
    assert made.status_code == 201
    grant = made.json
    assert grant == {
        "grant_id": grant["grant_id"],
        "path": "/a/b",
        "group": "Staff",
        "allow": READ,
        "deny": "--------",
        "path_pattern": None,
        "created_at": grant["created_at"],
        "created_by": ROOT_USER_ID,
        "username": None,
        "created_by_name": "root",
    }
    where = f"/system/grants/{grant['grant_id']}"
    assert http.get(where).json == grant
    again = http.post("/system/grants", {"path": "/a/b", "group": "STAFF", "deny": "---d----"})
    assert (again.status_code, again.json["grant_id"]) == (200, grant["grant_id"])
    assert (again.json["allow"], again.json["deny"]) == ("--------", "---d----")
    assert http.get("/system/grants", path="/a/b").json["grants"] == [again.json]
    gone = http.delete(where)
    assert (gone.status_code, gone.json["deleted"], gone.json["path"]) == (200, True, "/a/b")
    assert http.delete(where).status_code == http.get(where).status_code == 404
    assert http.get("/system/grants").json == {"grants": [], "has_more": False, "next_cursor": None}


def test_group_path_and_pattern_make_a_grant(http: Http) -> None:
    ann = http.user("ann")
    http.group("staff")
    ids = {
        http.grant("/a", "staff", allow=READ),
        http.grant("/a", f"user:{ann}", allow=READ),
        http.grant("/a", "staff", allow=READ, path_pattern="*.md"),
        http.grant("/a", "staff", allow=READ, path_pattern="**/*.md"),
        http.grant("/a/*.md", "staff", allow=READ),
        http.grant("/", "staff", allow=READ),
    }
    assert len(ids) == 6
    assert http.grant("/a", "staff", deny=READ, path_pattern="/*.md/") in ids
    assert {one["grant_id"] for one in http.get("/system/grants").json["grants"]} == ids


def test_grants_are_listed_by_path_and_by_group_in_pages(http: Http) -> None:
    for name in ("a", "b", "c"):
        http.group(name)
        for path in ("/x", "/y", "/z"):
            http.grant(path, name, allow=READ)

    def found(**query: str) -> list[tuple[str, str]]:
        shown: list[tuple[str, str]] = []
        cursor: dict[str, str] = {}
        while True:
            page = http.get("/system/grants", limit="2", **query, **cursor).json
            assert len(page["grants"]) <= 2
            shown += [(one["path"], one["group"]) for one in page["grants"]]
            if not page["has_more"]:
                return sorted(shown)
            cursor = {"after": page["next_cursor"]}

    assert found() == [(path, name) for path in ("/x", "/y", "/z") for name in ("a", "b", "c")]
    assert found(path="/y") == [("/y", name) for name in ("a", "b", "c")]
    assert found(group="B") == [(path, "b") for path in ("/x", "/y", "/z")]
    assert found(path="z", group="c") == [("/z", "c")]
    assert found(path="/none") == []
    assert http.get("/system/grants", group="none").status_code == 404
    assert http.get("/system/grants", after="x").status_code == 400
    assert http.get("/system/grants", path="/../a").status_code == 400


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"allow": "r"}, "allow"),
        ({"allow": "crudlifyx"}, "allow"),
        ({"allow": "rc------"}, "allow"),
        ({"allow": "CRUDLIFY"}, "allow"),
        ({"deny": "xxxxxxxx"}, "deny"),
        ({}, "allow"),
        ({"allow": "--------", "deny": "--------"}, "allow"),
        ({"allow": READ, "path_pattern": ""}, "path_pattern"),
        ({"allow": READ, "path_pattern": "/"}, "path_pattern"),
        ({"allow": READ, "path_pattern": "a/../b"}, "path_pattern"),
        ({"allow": READ, "path_pattern": "a\u0000"}, "path_pattern"),
        ({"allow": READ, "path_pattern": 7}, "path_pattern"),
        ({"allow": READ, "path": 7}, "path"),
        ({"allow": READ, "group": None}, "group"),
    ],
)
def test_what_is_malformed_is_400_and_names_the_field(http: Http, body: dict[str, Any], field: str) -> None:
    http.group("staff")
    refused = http.post("/system/grants", {"path": "/a", "group": "staff", **body})
    assert (refused.status_code, refused.json["field"]) == (400, field)


def test_paths_are_checked_and_the_system_has_none(http: Http) -> None:
    http.group("staff")
    for path in ("/a/../b", "/a\u0000", "/" + "x" * 256):
        refused = http.post("/system/grants", {"path": path, "group": "staff", "allow": READ})
        assert (refused.status_code, refused.json["code"]) == (400, "INVALID_PATH")
    for path in ("/.svc-system", "/.svc-system/users", "/.system/x", "//.svc-system//x"):
        refused = http.post("/system/grants", {"path": path, "group": "staff", "allow": READ})
        assert (refused.status_code, refused.json["code"]) == (404, "NOT_FOUND")


def test_nothing_is_granted_to_who_is_not_there(http: Http) -> None:
    for group in ("none", f"user:{NOBODY}", f"user:{ROOT_USER_ID}", "user:ann", ""):
        refused = http.post("/system/grants", {"path": "/a", "group": group, "allow": READ})
        assert refused.status_code == 404
    ann = http.user("ann")
    made = http.post("/system/grants", {"path": "/a", "group": f"user:{ann.upper()}", "allow": READ})
    assert (made.status_code, made.json["group"]) == (201, f"user:{ann}")


@pytest.mark.parametrize("grant_id", ["x", "-", "x-", "-x", "..", "a-b-c", "%00", "x" * 300])
def test_a_grant_that_is_not_there_is_404(http: Http, grant_id: str) -> None:
    for method in ("GET", "DELETE"):
        answer = http(method, f"/system/grants/{grant_id}")
        assert answer.status_code in (404, 400), answer.text


def test_many_who_take_back_one_grant_do_it_once(http: Http) -> None:
    http.group("staff")
    where = f"/system/grants/{http.grant('/a', 'staff', allow=READ)}"
    statuses: list[int] = []
    in_parallel(8, lambda _: statuses.append(http.delete(where).status_code))
    assert sorted(statuses) == [200] + [404] * 7


def test_many_who_grant_to_one_group_all_do(http: Http) -> None:
    http.group("staff")
    in_parallel(12, lambda number: http.grant(f"/{number}", "staff", allow=READ))
    assert len(http.get("/system/grants", group="staff").json["grants"]) == 12


def test_commits_say_who_granted_what(http: Http) -> None:
    http.group("staff")
    http.delete(f"/system/grants/{http.grant('/a', 'staff', allow=READ)}")
    head = http.database.head().sequence
    messages = [http.database.commit(number).transactions[-1].message for number in (head - 1, head)]
    assert messages == ["grant /a to staff", "take back the grant of /a to staff"]


def test_a_decision_is_explained_rule_by_rule(http: Http) -> None:
    ann = http.user("ann", tags=["night"])
    http.group("staff", members=[ann])
    http.group("owls", tags=["night"])
    http.group("strangers")
    root_grant = http.grant("/", "staff", allow="crudl---")
    denied = http.grant("/a", "owls", deny="--ud----")
    own = http.grant("/a", f"user:{ann}", allow="--u-----")
    pattern = http.grant("/a", "staff", allow="-----i--", path_pattern="**/*.py")
    http.grant("/a", "strangers", allow="crudlify")
    http.grant("/a/b/c", "staff", allow="crudlify")
    access = http.get("/system/access", path="/a/b", user="Ann").json
    assert access["user_id"] == ann
    assert (access["path"], access["username"], access["is_root"], access["is_active"]) == (
        "/a/b", "ann", False, True,
    )  # fmt: skip
    assert access["permissions"] == "cr--l---"
    assert access["groups"] == [
        {"group": f"user:{ann}", "by": "self"},
        {"group": "staff", "by": "member"},
        {"group": "owls", "by": "tag night"},
    ]
    levels = {
        level["path"]: {one["grant_id"]: one["applies"] for one in level["grants"]}
        for level in access["levels"]
    }
    assert levels == {"/a": {denied: True, own: True, pattern: False}, "/": {root_grant: True}}
    assert [level["path"] for level in access["levels"]] == ["/a", "/"]
    by_name = {one["operation"]: one for one in access["decisions"]}
    assert by_name["update"] == {
        "operation": "update",
        "flag": "u",
        "allowed": False,
        "level": "/a",
        "groups": ["owls"],
        "grant_ids": [denied],
        "reason": "denied at /a to owls; deny beats allow",
    }
    assert by_name["read"]["reason"] == "allowed at / to staff"
    assert by_name["configure"]["reason"] == "no grant says anything"
    assert http.get("/system/access", path="/a/x.py", user=ann).json["permissions"] == "cr--li--"


def test_that_configuration_needs_more_is_explained(http: Http) -> None:
    ann = http.user("ann")
    http.grant("/a", f"user:{ann}", allow="crudl---")
    access = http.get("/system/access", path="/a/.svc-config/indexes.json", user="ann").json
    assert access["permissions"] == "-r-dl---"
    reason = "but here is configuration, which only root or those who may configure change"
    by_name = {one["operation"]: one for one in access["decisions"]}
    assert by_name["create"]["reason"] == f"allowed at /a to user:{ann}; {reason}"
    assert by_name["read"]["reason"] == f"allowed at /a to user:{ann}"
    assert http.get("/system/access", path="/a/b", user="ann").json["permissions"] == "crudl---"


def test_root_and_the_deactivated_are_explained_too(http: Http) -> None:
    ann = http.user("ann")
    http.grant("/", f"user:{ann}", allow="crudlify")
    http.delete(f"/system/users/{ann}")
    access = http.get("/system/access", path="/a", user="ann").json
    assert (access["is_active"], access["permissions"]) == (False, "--------")
    assert {one["reason"] for one in access["decisions"]} == {"the user is deactivated"}
    for user in ("root", ROOT_USER_ID):
        access = http.get("/system/access", path="/a", user=user).json
        assert (access["is_root"], access["permissions"]) == (True, "crudlify")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"path": "/a"}, 400),
        ({"user": "ann"}, 400),
        ({"path": "/..", "user": "ann"}, 400),
        ({"path": "/.svc-system/users", "user": "ann"}, 404),
        ({"path": "/a", "user": "none"}, 404),
        ({"path": "/a", "user": NOBODY}, 404),
        ({"path": "/a", "user": ""}, 404),
    ],
)
def test_what_cannot_be_explained_is_refused(http: Http, query: dict[str, str], status: int) -> None:
    http.user("ann")
    assert http.get("/system/access", **query).status_code == status


def test_a_record_that_nobody_can_read_counts_as_absent(http: Http) -> None:
    ann = http.user("ann")
    http.group("staff", members=[ann])
    http.grant("/a", "staff", allow=READ)
    with http.database.transaction() as transaction:
        for path, _ in list(http.database.system().walk(("grants",), files_only=True)):
            transaction.put_system(path, b"\xff", condition=Condition(if_match=("*",)))
    assert http.get("/system/grants").json["grants"] == []
    assert http.get("/system/access", path="/a", user="ann").json["permissions"] == "--------"
