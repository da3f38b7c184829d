"""The pages of users, groups and rights keep the contracts of the portal, and do what they say."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from falcon.testing import TestClient
from svc_portal.api import PortalPage
from svc_portal.testing import EntryActionContract, PortalPageContract, follow, send_form

from svc.plugin import Database
from svc_users.portal.access import AccessAction, AccessPage
from svc_users.portal.groups import GroupPage, GroupsPage
from svc_users.portal.seeing import SeeAsPage
from svc_users.portal.users import UserPage, UsersPage
from svc_users.users import create_user

HOSTILE = "<b onclick=alert(1)>"


class OfUsers(PortalPageContract):
    plugin_id = "users"

    def fill(self, database: Database) -> None:
        made = create_user(database, "ann", email="ann@example.com", tags=["staff"])
        self.ann = made.user_id
        with database.transaction() as changes:
            changes.put(("a", HOSTILE), b"x")


class TestUsersPage(OfUsers):
    urls = ("people", "people?name=ann", "people?tag=staff", "people?name=" + quote(HOSTILE))
    forms = (("people", "action=add&username=bob"), ("people", "action=add&username=ann"))

    @pytest.fixture
    def extension(self) -> PortalPage:
        return UsersPage()


class TestUserPage(OfUsers):
    @pytest.fixture
    def extension(self) -> PortalPage:
        return UserPage()

    @pytest.fixture(autouse=True)
    def of_ann(self, served: tuple[TestClient, Any]) -> None:
        self.urls = (f"people/{self.ann}",)  # type: ignore[misc]

    def test_a_user_is_added_changed_deactivated_and_let_in_again(
        self, served: tuple[TestClient, Any]
    ) -> None:
        client, _ = served
        added = send_form(client, "people", "action=add&username=bob&tags=a,+b")
        assert "Made the user bob." in follow(client, added)
        page = added.headers["location"].removeprefix("/portal/")
        changed = follow(
            client, send_form(client, page, "action=change&username=bobby&email=b%40example.com&tags=")
        )
        assert 'value="bobby"' in changed
        assert 'value="b@example.com"' in changed
        assert "may not sign in" in follow(client, send_form(client, page, "action=deactivate"))
        assert "deactivated" in client.simulate_get("/portal/people").text
        assert "bobby may sign in." in follow(client, send_form(client, page, "action=activate"))
        taken = follow(client, send_form(client, page, "action=change&username=ann"))
        assert 'class="message error"' in taken


class TestGroupsPage(OfUsers):
    urls = ("groups",)
    forms = (("groups", "action=add&name=staff&tags=staff"),)

    @pytest.fixture
    def extension(self) -> PortalPage:
        return GroupsPage()


class TestGroupPage(OfUsers):
    urls = ("groups/editors",)

    @pytest.fixture
    def extension(self) -> PortalPage:
        return GroupPage()

    @pytest.fixture(autouse=True)
    def editors(self, served: tuple[TestClient, Any]) -> None:
        assert send_form(served[0], "groups", "action=add&name=editors").status_code == 303

    def test_users_enter_and_leave_it(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        assert "ann is in it." in follow(client, send_form(client, "groups/editors", "action=enter&user=ann"))
        assert f'href="/portal/people/{self.ann}">ann<' in client.simulate_get("/portal/groups/editors").text
        assert "There is no user nobody." in follow(
            client, send_form(client, "groups/editors", "action=enter&user=nobody")
        )
        left = follow(client, send_form(client, "groups/editors", f"action=leave&user={self.ann}"))
        assert "no member any more" in left
        assert '<input type="hidden" name="action" value="enter">' in left
        tagged = follow(client, send_form(client, "groups/editors", "action=tags&tags=staff"))
        assert 'value="staff"' in tagged
        assert "with its grants" in follow(client, send_form(client, "groups/editors", "action=delete"))
        assert client.simulate_get("/portal/groups/editors").status_code == 404


class TestAccessPage(OfUsers):
    urls = (
        "access/",
        "access/a?user=ann",
        "access/a?user=nobody",
        "access/a/" + quote(HOSTILE),
        "access/not/there",
    )
    forms = (("access/a", "action=grant&user=ann&allow=r&allow=l"), ("access/a", "action=revoke&grant=x"))

    @pytest.fixture
    def extension(self) -> PortalPage:
        return AccessPage()

    def test_a_path_is_granted_explained_and_taken_back(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        page = "access/a"
        granted = follow(client, send_form(client, page, "action=grant&user=ann&allow=r&allow=l&deny=d"))
        assert "Granted to ann." in granted
        assert "may <code>-r--l---</code>, may not <code>---d----</code>" in granted
        below = client.simulate_get(f"/portal/{page}/below?user=ann").text
        assert 'From <a href="/portal/access/a">/a</a>' in below
        assert "<strong>read</strong>: allowed." in below
        assert "<strong>delete</strong>: not allowed." in below
        assert 'href="/portal/access/a">/a</a>' in client.simulate_get(f"/portal/people/{self.ann}").text
        grant = granted.partition('name="grant" value="')[2].partition('"')[0]
        taken = follow(client, send_form(client, page, f"action=revoke&grant={grant}"))
        assert "Took the grant of ann back." in taken
        assert "-r--l---" not in taken
        undo = "action=grant&allow=rl&deny=d&pattern=&group=" + quote(f"user:{self.ann}")
        assert '<input type="hidden" name="allow" value="rl">' in taken
        assert "may <code>-r--l---</code>" in follow(client, send_form(client, page, undo))
        assert "Nothing was chosen" in follow(client, send_form(client, page, "action=grant&user=ann"))
        assert "no such right" in follow(client, send_form(client, page, "action=grant&user=ann&allow=z"))


class TestAccessAction(EntryActionContract):
    plugin_id = "users"

    @pytest.fixture
    def extension(self) -> AccessAction:
        return AccessAction()


class TestSeeAsPage(OfUsers):
    @pytest.fixture
    def extension(self) -> PortalPage:
        return SeeAsPage()

    def fill(self, database: Database) -> None:
        super().fill(database)
        create_user(database, "ben", email=None, tags=[])
        with database.transaction() as changes:
            for name in ("open", "secret"):
                changes.put(("a", "b", name), b"x")
            changes.put(("top",), b"x")

    @pytest.fixture(autouse=True)
    def of_ann(self, served: tuple[TestClient, Any]) -> None:
        self.urls = (f"people/{self.ann}/sees/", f"people/{self.ann}/sees/a/b", f"people/{self.ann}/sees/x")  # type: ignore[misc]
        client, _ = served
        granted = send_form(client, "access/a/b/open", "action=grant&user=ann&allow=r&allow=l")
        assert granted.status_code == 303

    def test_it_shows_what_the_user_would_see(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        top = client.simulate_get(self.page("")).text
        assert "You are still root." in top
        assert ">a/</a>" in top
        assert "top" not in top.partition("<table>")[2]
        inside = client.simulate_get(self.page("a/b")).text
        assert '<th scope="row">open</th>' in inside
        assert "secret" not in inside
        assert "<form" not in inside.partition("<main")[2]
        for missing in ("a/b/secret", "not/there", "a/b/open"):
            assert "looks as if it were missing" in client.simulate_get(self.page(missing)).text, missing

    def test_pages_go_on_where_the_one_before_has_ended(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        assert send_form(client, "access/", "action=grant&user=ann&allow=l").status_code == 303
        names, after = [], None
        for _ in range(9):
            query = {"path": "/a/b", "user": "ann", "limit": 1, **({"after": after} if after else {})}
            page = client.simulate_get("/system/access/listing", params=query).json
            names += [one["name"] for one in page["entries"]]
            after = page["next_cursor"]
            if not page["has_more"]:
                break
        assert names == ["open", "secret"]

    def test_there_is_nobody_to_see_as(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        for user, status in (("root", 400), ("nobody", 404)):
            assert client.simulate_get(f"/portal/people/{user}/sees/").status_code == status
        send_form(client, f"people/{self.ann}", "action=deactivate")
        assert "may not sign in" in client.simulate_get(self.page("")).text

    def page(self, path: str) -> str:
        return f"/portal/people/{self.ann}/sees/{path}"
