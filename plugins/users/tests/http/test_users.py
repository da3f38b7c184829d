"""``/system/users``: who is there, under which name, and whether they may sign in."""

from __future__ import annotations

from typing import Any

import pytest

from ..conftest import NOBODY, ROOT, Http, in_parallel  # noqa: TID252


def test_a_user_is_made_shown_changed_and_deactivated(http: Http) -> None:
    made = http.post("/system/users", {"username": "Ann", "email": "a@example.org", "tags": ["b", "a", "b"]})
    assert made.status_code == 201
    user = made.json
    assert set(user) == {
        "user_id", "username", "email", "is_active", "tags", "created_at", "updated_at", "groups",
    }  # fmt: skip
    assert (user["username"], user["email"], user["is_active"]) == ("Ann", "a@example.org", True)
    assert user["tags"] == ["a", "b"]
    assert user["groups"] == [f"user:{user['user_id']}"]
    where = f"/system/users/{user['user_id']}"
    assert http.get(where).json == user
    assert http.get(where.upper().replace("/SYSTEM/USERS", "/system/users")).json == user
    changed = http.patch(where, {"username": "Anna", "email": None, "tags": []})
    assert changed.status_code == 200
    expected = {"username": "Anna", "email": None, "tags": [], "updated_at": changed.json["updated_at"]}
    assert changed.json == {**user, **expected}
    assert changed.json["updated_at"] >= user["updated_at"]
    gone = http.delete(where)
    assert (gone.status_code, gone.json["deactivated"], gone.json["username"]) == (200, True, "Anna")
    assert http.delete(where).status_code == 200
    assert http.get(where).json["is_active"] is False
    assert http.patch(where, {"is_active": True}).json["is_active"] is True


def test_a_change_that_changes_nothing_commits_nothing(http: Http) -> None:
    where = f"/system/users/{http.user('ann')}"
    before = http.database.head().sequence
    user = http.get(where).json
    assert http.patch(where, {"username": "ann", "is_active": True}).json == user
    assert http.patch(where, {}).json == user
    assert http.database.head().sequence == before


@pytest.mark.parametrize("other", ["ann", "ANN", "Ann"])
def test_a_name_is_one_users_in_every_spelling(http: Http, other: str) -> None:
    http.user("Ann")
    taken = http.post("/system/users", {"username": other})
    assert (taken.status_code, taken.json["code"], taken.json["field"]) == (409, "ALREADY_EXISTS", "username")
    bob = http.user("bob")
    assert http.patch(f"/system/users/{bob}", {"username": other}).status_code == 409
    assert http.get(f"/system/users/{bob}").json["username"] == "bob"


def test_the_unicode_forms_of_a_name_are_one_name(http: Http) -> None:
    composed, decomposed = "Zo\u00eb", "Zoe\u0308"
    http.user(decomposed)
    assert http.get("/system/users", username=composed).json["users"][0]["username"] == composed
    assert http.post("/system/users", {"username": composed.upper()}).status_code == 409


def test_a_user_may_spell_the_own_name_anew_and_leaves_an_old_one_to_others(http: Http) -> None:
    ann = http.user("ann")
    assert http.patch(f"/system/users/{ann}", {"username": "ANN"}).json["username"] == "ANN"
    assert http.patch(f"/system/users/{ann}", {"username": "eve"}).status_code == 200
    other = http.user("ann")
    assert http.get("/system/users", username="Ann").json["users"][0]["user_id"] == other


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"username": ""}, "username"),
        ({"username": " ann"}, "username"),
        ({"username": "a\u0000b"}, "username"),
        ({"username": "a\nb"}, "username"),
        ({"username": "x" * 201}, "username"),
        ({"username": NOBODY}, "username"),
        ({"username": "user:ann"}, "username"),
        ({"username": "User:ann"}, "username"),
        ({"username": 7}, "username"),
        ({"username": "a", "email": "a"}, "email"),
        ({"username": "a", "email": "a b@c"}, "email"),
        ({"username": "a", "email": "a@" + "b" * 254}, "email"),
        ({"username": "a", "tags": ["ok", ""]}, "tags"),
        ({"username": "a", "tags": ["x" * 101]}, "tags"),
        ({"username": "a", "tags": [str(number) for number in range(101)]}, "tags"),
        ({"username": "a", "tags": "x"}, "tags"),
        ({"username": "a", "is_active": "yes"}, "is_active"),
    ],
)
def test_what_is_malformed_is_400_and_names_the_field(http: Http, body: dict[str, Any], field: str) -> None:
    refused = http.post("/system/users", body)
    assert (refused.status_code, refused.json["field"]) == (400, field)
    if field != "username":
        where = f"/system/users/{http.user('there')}"
        change = {name: value for name, value in body.items() if name != "username"}
        refused = http.patch(where, change)
        assert (refused.status_code, refused.json["field"]) == (400, field)


def test_members_that_no_user_has_are_refused(http: Http) -> None:
    assert http.post("/system/users", {"username": "a", "user_id": NOBODY}).status_code == 400
    assert http.post("/system/users", {}).status_code == 400
    assert http.post("/system/users", b"\x80").status_code == 400
    assert http.post("/system/users", b'{"username": "\\ud800"}').status_code == 400
    where = f"/system/users/{http.user('ann')}"
    assert http.patch(where, {"created_at": 1}).status_code == 400
    assert http.patch(where, {"username": None}).status_code == 400


def test_root_cannot_be_made_changed_or_deactivated(http: Http) -> None:
    for name in ("root", "Root"):
        assert http.post("/system/users", {"username": name}).status_code == 409
    assert http.patch(f"/system/users/{ROOT}", {"is_active": False}).status_code == 409
    assert http.patch(f"/system/users/{ROOT}", {"username": "boss"}).status_code == 409
    assert http.delete(f"/system/users/{ROOT}").status_code == 409
    assert http.get(f"/system/users/{ROOT}").status_code == 404
    ann = http.user("ann")
    assert http.patch(f"/system/users/{ann}", {"username": "ROOT"}).status_code == 409


@pytest.mark.parametrize("user_id", [NOBODY, "x", "..", "%00", "{" + NOBODY + "}", NOBODY.replace("-", "")])
def test_who_is_not_there_is_404(http: Http, user_id: str) -> None:
    for method in ("GET", "DELETE"):
        assert http(method, f"/system/users/{user_id}").status_code in (404, 400)
    assert http.patch(f"/system/users/{NOBODY}", {"email": None}).status_code == 404


def test_users_are_listed_in_pages_and_by_name_tag_and_state(http: Http) -> None:
    ids = sorted(http.user(f"u{number}", tags=["even"] if number % 2 == 0 else []) for number in range(7))
    http.delete(f"/system/users/{ids[3]}")
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = http.get("/system/users", limit="3", **cursor).json
        assert len(page["users"]) <= 3
        seen += [user["user_id"] for user in page["users"]]
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            break
        cursor = {"after": page["next_cursor"]}
    assert seen == ids

    def found(**query: str) -> list[str]:
        return sorted(user["username"] for user in http.get("/system/users", **query).json["users"])

    assert found(tag="even") == ["u0", "u2", "u4", "u6"]
    assert found(username="U3") == ["u3"]
    assert found(username="u3", tag="even") == []
    assert found(username="none") == []
    off = http.get(f"/system/users/{ids[3]}").json["username"]
    assert found(is_active="false") == [off]
    assert off not in found(is_active="true")
    assert found(tag="none") == []
    for query in ({"limit": "0"}, {"limit": "10001"}, {"limit": "x"}, {"is_active": "maybe"}):
        refused = http.get("/system/users", **query)
        assert (refused.status_code, refused.json["field"]) == (400, next(iter(query)))


def test_a_filtered_page_looks_at_a_bounded_number_of_users(http: Http) -> None:
    configured = http.send("PUT", "/system/plugins/users/configuration", {"scanned": 2})
    assert configured.status_code == 200, configured.text
    ids = sorted(http.user(f"u{number}") for number in range(5))
    http.delete(f"/system/users/{ids[4]}")
    pages = 0
    cursor: dict[str, str] = {}
    found: list[str] = []
    while cursor is not None:
        page = http.get("/system/users", is_active="false", **cursor).json
        found += [user["user_id"] for user in page["users"]]
        pages += 1
        if not page["has_more"]:
            break
        cursor = {"after": page["next_cursor"]}
    assert found == [ids[4]]
    assert pages == 3


def test_of_many_who_want_one_name_exactly_one_gets_it(http: Http) -> None:
    statuses: list[int] = []
    in_parallel(
        16,
        lambda number: statuses.append(
            http.post("/system/users", {"username": "Ann" if number % 2 else "ann"}).status_code
        ),
    )
    assert sorted(statuses) == [201] + [409] * 15
    assert len(http.get("/system/users").json["users"]) == 1


def test_of_many_who_take_one_name_by_a_change_exactly_one_gets_it(http: Http) -> None:
    ids = [http.user(f"u{number}") for number in range(8)]
    statuses: list[int] = []
    in_parallel(
        8,
        lambda number: statuses.append(
            http.patch(f"/system/users/{ids[number]}", {"username": "ann"}).status_code
        ),
    )
    assert sorted(statuses) == [200] + [409] * 7
    names = sorted(user["username"] for user in http.get("/system/users").json["users"])
    assert names.count("ann") == 1


def test_changes_of_one_user_at_the_same_time_are_all_kept(http: Http) -> None:
    ann = http.user("ann")
    changes: list[dict[str, Any]] = [
        {"email": "a@b"},
        {"tags": ["x"]},
        {"is_active": False},
        {"username": "eve"},
    ]
    in_parallel(4, lambda number: http.patch(f"/system/users/{ann}", changes[number]))
    user = http.get(f"/system/users/{ann}").json
    assert {name: user[name] for change in changes for name in change} == {
        "email": "a@b", "tags": ["x"], "is_active": False, "username": "eve",
    }  # fmt: skip


def test_commits_say_who_did_what(http: Http) -> None:
    ann = http.user("ann")
    http.delete(f"/system/users/{ann}")
    head = http.database.head().sequence
    records = [http.database.commit(number).transactions[-1] for number in (head - 1, head)]
    assert [(one.actor, one.message) for one in records] == [
        (ROOT, "make user ann"),
        (ROOT, "deactivate user ann"),
    ]
