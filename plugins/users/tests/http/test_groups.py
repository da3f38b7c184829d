"""``/system/groups``: who is in which group, by name and by tag, and what goes when a group goes."""

from __future__ import annotations

from typing import Any

import pytest

from svc.plugin import ROOT_USER_ID, Operation
from svc_users import groups
from svc_users.api import RightsCache, find_user, grants_at, groups_of

from ..conftest import NOBODY, Http, in_parallel  # noqa: TID252


def may(http: Http, user_id: str, letter: str, *path: str) -> bool:
    """Whether a user's grants allow something, as the next request would see it."""
    system = http.database.system()
    user = find_user(system, user_id)
    assert user is not None
    rights = RightsCache(http.database).of(groups_of(system, user), system)
    return rights.allows(Operation(letter), path)


def test_a_group_is_made_shown_changed_and_deleted(http: Http) -> None:
    ann, bob = http.user("ann"), http.user("bob")
    made = http.post("/system/groups", {"name": "Staff", "members": [ann, ann], "tags": ["all"]})
    assert made.status_code == 201
    group = made.json
    assert group == {
        "name": "Staff",
        "members": [ann],
        "member_count": 1,
        "tags": ["all"],
        "created_at": group["created_at"],
        "has_more": False,
        "next_cursor": None,
    }
    assert http.get("/system/groups/staff").json == group
    changed = http.patch("/system/groups/Staff", {"add_members": [bob], "remove_members": [ann], "tags": []})
    assert (changed.status_code, changed.json["members"], changed.json["tags"]) == (200, [bob], [])
    assert http.groups_of(bob) == ["Staff", f"user:{bob}"]
    assert http.groups_of(ann) == [f"user:{ann}"]
    replaced = http.patch("/system/groups/Staff", {"members": [ann]})
    assert replaced.json["members"] == [ann]
    assert http.groups_of(bob) == [f"user:{bob}"]
    assert http.delete("/system/groups/STAFF").json == {"deleted": True, "name": "Staff"}
    assert http.groups_of(ann) == [f"user:{ann}"]
    for answer in (http.get("/system/groups/Staff"), http.delete("/system/groups/Staff")):
        assert answer.status_code == 404
    assert http.patch("/system/groups/Staff", {"tags": []}).status_code == 404


def test_the_group_that_every_user_is_can_be_shown(http: Http) -> None:
    ann = http.user("ann")
    group = http.get(f"/system/groups/user:{ann}")
    assert (group.status_code, group.json["members"], group.json["member_count"]) == (200, [ann], 1)
    assert group.json["name"] == f"user:{ann}"
    for nobody in ("user:", "user:x", "user:7f0a2b1c-0000-4000-8000-0000000000aa"):
        assert http.get(f"/system/groups/{nobody}").status_code == 404


def test_tags_make_members_by_both_sides(http: Http) -> None:
    ann = http.user("ann", tags=["red"])
    http.group("reds", tags=["red", "blue"])
    assert http.groups_of(ann) == ["reds", f"user:{ann}"]
    http.patch(f"/system/users/{ann}", {"tags": ["green"]})
    assert http.groups_of(ann) == [f"user:{ann}"]
    http.patch("/system/groups/reds", {"tags": ["green"]})
    assert http.groups_of(ann) == ["reds", f"user:{ann}"]
    http.patch("/system/groups/reds", {"tags": ["Green"]})
    assert http.groups_of(ann) == [f"user:{ann}"]
    assert http.get("/system/groups/reds").json["members"] == []


def test_a_group_that_is_made_again_has_nothing_of_the_old_one(http: Http) -> None:
    ann = http.user("ann")
    http.group("staff", members=[ann], tags=["t"])
    http.grant("/a", "staff", allow="-r------")
    assert may(http, ann, "r", "a")
    http.delete("/system/groups/staff")
    assert not may(http, ann, "r", "a")
    http.group("staff")
    assert http.groups_of(ann) == [f"user:{ann}"]
    http.patch("/system/groups/staff", {"members": [ann]})
    assert http.groups_of(ann) == ["staff", f"user:{ann}"]
    assert not may(http, ann, "r", "a")
    assert http.get("/system/grants").json["grants"] == []
    assert http.get("/system/grants", path="/a").json["grants"] == []


@pytest.mark.parametrize("cleared_at_once", [1, 2, 500])
def test_what_led_to_a_deleted_group_is_cleared(
    http: Http, monkeypatch: pytest.MonkeyPatch, cleared_at_once: int
) -> None:
    monkeypatch.setattr(groups, "_CLEARED_AT_ONCE", cleared_at_once)
    http.group("other", members=[http.user("eve")])
    before = [path for path, _ in http.database.system().walk(("groups",), files_only=True)]
    members = [http.user(f"u{number}") for number in range(3)]
    http.group("staff", members=members, tags=["t"])
    http.grant("/a", "staff", allow="-r------")
    http.grant("/b", "staff", allow="-r------", path_pattern="*.md")
    http.delete("/system/groups/staff")
    system = http.database.system()
    assert [path for path, _ in system.walk(("groups",), files_only=True)] == before
    for directory in ("grants", "grants-by-path"):
        assert list(system.walk((directory,), files_only=True)) == []


def test_a_clearing_that_was_cut_off_leaves_nothing_that_counts(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = http.user("ann")
    http.group("staff", members=[ann])
    http.grant("/a", "staff", allow="-r------")
    with monkeypatch.context() as patched:
        patched.setattr(groups, "_clear_hints", lambda *_: None)
        http.delete("/system/groups/staff")
    assert http.groups_of(ann) == [f"user:{ann}"]
    assert list(grants_at(http.database.system(), ("a",))) == []
    http.group("staff")
    assert http.groups_of(ann) == [f"user:{ann}"]
    assert http.get("/system/grants", path="/a").json["grants"] == []
    http.grant("/a", "staff", allow="-r------")
    assert len(http.get("/system/grants", path="/a").json["grants"]) == 1


def test_a_clearing_stops_where_the_group_was_made_again(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = http.user("ann")
    http.group("staff", members=[ann])
    clear = groups._clear_hints

    def make_again_first(*arguments: Any) -> None:
        http.group("staff", members=[ann])
        http.grant("/a", "staff", allow="-r------")
        clear(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(groups, "_clear_hints", make_again_first)
        http.delete("/system/groups/staff")
    assert http.groups_of(ann) == ["staff", f"user:{ann}"]
    assert may(http, ann, "r", "a")


def test_groups_and_their_members_are_listed_in_pages(http: Http) -> None:
    ids = sorted(http.user(f"u{number}") for number in range(5))
    names = [f"g{number}" for number in range(5)]
    for name in names:
        http.group(name, members=ids)
    seen: list[str] = []
    query: dict[str, str] = {}
    while True:
        page = http.get("/system/groups", limit="2", **query).json
        seen += [group["name"] for group in page["groups"]]
        if not page["has_more"]:
            break
        query = {"after": page["next_cursor"]}
    assert sorted(seen) == names
    first = http.get("/system/groups/g0", limit="3").json
    assert (first["members"], first["member_count"], first["has_more"]) == (ids[:3], 5, True)
    rest = http.get("/system/groups/g0", limit="3", after=first["next_cursor"]).json
    assert (rest["members"], rest["has_more"]) == (ids[3:], False)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": ".."}, "name"),
        ({"name": "a\tb"}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": f"user:{NOBODY}"}, "name"),
        ({"name": "USER:x"}, "name"),
        ({"name": "a", "members": ["x"]}, "members"),
        ({"name": "a", "members": [NOBODY]}, "members"),
        ({"name": "a", "members": [ROOT_USER_ID]}, "members"),
        ({"name": "a", "members": NOBODY}, "members"),
        ({"name": "a", "tags": [""]}, "tags"),
    ],
)
def test_what_is_malformed_is_400_and_names_the_field(http: Http, body: dict[str, Any], field: str) -> None:
    refused = http.post("/system/groups", body)
    assert (refused.status_code, refused.json["field"]) == (400, field)
    assert http.get("/system/groups").json["groups"] == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"add_members": [NOBODY]}, "add_members"),
        ({"add_members": ["x"]}, "add_members"),
        ({"remove_members": ["x"]}, "remove_members"),
        ({"members": [], "add_members": ["x"]}, "members"),
        ({"add_members": [NOBODY], "remove_members": [NOBODY.upper()]}, "remove_members"),
        ({"members": None}, "members"),
        ({"tags": [" "]}, "tags"),
    ],
)
def test_a_malformed_change_changes_nothing(http: Http, change: dict[str, Any], field: str) -> None:
    http.group("staff", members=[http.user("ann")])
    before = http.get("/system/groups/staff").json
    refused = http.patch("/system/groups/staff", change)
    assert (refused.status_code, refused.json["field"]) == (400, field)
    assert http.get("/system/groups/staff").json == before


def test_a_request_names_a_bounded_number_of_members(http: Http) -> None:
    ids = [http.user(f"u{number}") for number in range(3)]
    http.group("staff", members=ids)
    assert http.send("PUT", "/system/plugins/users/configuration", {"maximum_members": 2}).status_code == 200
    for body in ({"members": ids}, {"add_members": ids}, {"members": ids[:1]}):
        refused = http.patch("/system/groups/staff", body)
        assert (refused.status_code, refused.json["limit"]) == (413, 2)
    assert http.patch("/system/groups/staff", {"remove_members": ids[:2]}).json["members"] == ids[2:]
    assert http.post("/system/groups", {"name": "b", "members": ids}).status_code == 413


def test_the_own_group_of_a_user_is_no_group_that_can_be_changed(http: Http) -> None:
    ann = http.user("ann")
    name = f"user:{ann}"
    assert http.patch(f"/system/groups/{name}", {"tags": []}).status_code == 404
    assert http.delete(f"/system/groups/{name}").status_code == 404


def test_removing_who_is_no_member_is_no_error(http: Http) -> None:
    ann = http.user("ann")
    http.group("staff")
    assert http.patch("/system/groups/staff", {"remove_members": [ann, NOBODY]}).status_code == 200
    assert http.get("/system/groups/staff").json["members"] == []


def test_of_many_who_make_one_group_exactly_one_does(http: Http) -> None:
    statuses: list[int] = []
    in_parallel(12, lambda _: statuses.append(http.post("/system/groups", {"name": "one"}).status_code))
    assert sorted(statuses) == [201] + [409] * 11


def test_members_that_come_at_the_same_time_all_come(http: Http) -> None:
    ids = [http.user(f"u{number}") for number in range(12)]
    http.group("staff")
    in_parallel(12, lambda number: http.patch("/system/groups/staff", {"add_members": [ids[number]]}))
    assert http.get("/system/groups/staff").json["members"] == sorted(ids)


def test_nothing_is_left_of_changes_that_run_beside_a_deletion(http: Http) -> None:
    ids = [http.user(f"u{number}") for number in range(6)]
    http.group("staff")

    def work(number: int) -> None:
        if number == 3:
            http.delete("/system/groups/staff")
        elif number % 2:
            http.patch("/system/groups/staff", {"add_members": [ids[number]]})
        else:
            http.post("/system/grants", {"path": f"/{number}", "group": "staff", "allow": "-r------"})

    in_parallel(6, work)
    assert http.get("/system/groups/staff").status_code == 404
    http.group("staff")
    assert http.get("/system/groups/staff").json["members"] == []
    assert http.get("/system/grants", group="staff").json["grants"] == []
    assert all(http.groups_of(user_id) == [f"user:{user_id}"] for user_id in ids)
