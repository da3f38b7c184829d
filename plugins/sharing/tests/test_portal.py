"""The pages of sharing: links and shares of a path by root, all links, and what is shared with the reader."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import pytest
from svc_portal.testing import OWN_FORM, PageReader

from svc.pipeline import check_route
from svc.plugins import Plugins, load_plugins

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    loaded = load_plugins(["users", "auth.self", "sharing", "files", "portal"], check_route=check_route)
    assert not loaded.problems
    return loaded


def show(http: Any, page: str, token: str = "root") -> str:
    answer = http.get(f"/portal/{page}", token=token)
    assert answer.status_code == 200, answer.text
    assert PageReader(answer.text).faults == []
    return str(answer.text)


def post(http: Any, page: str, **form: Any) -> Any:
    return http("POST", f"/portal/{page}", body=urlencode(form), fields=OWN_FORM)


def follow(http: Any, answer: Any) -> str:
    """The page that comes next, with what it says."""
    assert answer.status_code == 303, answer.text
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return str(http.get(answer.headers["location"], fields={"Cookie": cookie}).text)


def test_a_link_is_made_shown_once_opens_and_ends(http: Any) -> None:
    http.write("/a/one.txt")
    assert "No link leads to this path." in show(http, "share/a")
    made = post(http, "share/a", action="link", days="2").text
    assert PageReader(made).faults == []
    url = made.partition("<code>http://")[2].partition("<")[0]
    assert url.startswith("falconframework.org/share#")
    key = url.partition("#")[2]
    assert http.open(key.rpartition("=")[2]).status_code == 200
    listed = show(http, "share/a")
    assert key not in listed
    assert show(http, "links").count('name="link"') == 1
    link = listed.partition('name="link" value="')[2].partition('"')[0]
    assert "Ended the link" in follow(http, post(http, "links", action="revoke", link=link))
    assert "No link is open." in show(http, "links")


def test_a_path_is_shared_with_users_and_groups_and_shared_no_more(http: Any) -> None:
    http.write("/a/one.txt")
    user_id, token = http.user("ann")
    http.group("staff")
    shared = follow(http, post(http, "share/a", action="share", users="ann", groups="staff"))
    assert "Shared /a with ann, staff." in shared
    assert "User ann: may <code>-r--l---</code>" in shared
    assert 'href="/portal/files/a">/a</a>' in show(http, "shared", token)
    ended = follow(http, post(http, "share/a", action="end", users=user_id))
    assert "Ended the share." in ended
    assert "User ann" not in ended
    assert "Nothing is shared with you." in show(http, "shared", token)


def test_what_is_wrong_is_said(http: Any) -> None:
    http.write("/a/one.txt")
    assert "1 to 3650 days" in follow(http, post(http, "share/a", action="link", days="x"))
    assert "Say with which users" in follow(http, post(http, "share/a", action="share"))
    nobody = follow(http, post(http, "share/a", action="share", users="nobody"))
    assert 'class="message error"' in nobody
    assert 'class="message error"' in follow(http, post(http, "share/missing", action="link"))


def test_others_than_root_have_no_pages_and_no_actions_of_it(http: Any) -> None:
    http.write(f"/a/{HOSTILE}")
    _, token = http.user("ann")
    post(http, "share/a", action="share", users="ann")
    assert "/portal/share/a/" in show(http, "files/a")
    assert HOSTILE not in show(http, f"share/a/{quote(HOSTILE)}")
    listing = show(http, "files/a", token)
    assert "/portal/share/" not in listing
    assert "/portal/links" not in listing
    assert "/portal/shared" in listing
    for page in ("share/a", "links"):
        assert http.get(f"/portal/{page}", token=token).status_code == 404
    assert http.get("/portal/shared").status_code == 404
