"""Sessions of browsers: how they begin, what they are good for, and how they end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from portal_pages import Answer, Opener, Portal, sign_in

FORM = "application/x-www-form-urlencoded"


def header_of(cookies: dict[str, Any], *names: str) -> str:
    return "; ".join(f"{name}={cookies[name].value}" for name in names or cookies)


def post(portal: Portal, path: str, body: str = "", **fields: str) -> Answer:
    return portal.ask("POST", path, body, Content_Type=FORM, **fields)


@pytest.fixture
def session(portal: Portal) -> dict[str, Any]:
    answer = post(portal, "/portal/sign-in", f"how=key&key={portal.key}", Origin=portal.url)
    assert answer.status == 303
    portal.secrets += [cookie.value for cookie in answer.cookies.values()]
    return answer.cookies


def test_the_address_of_the_server_leads_to_the_sign_in_and_back(portal: Portal, open_page: Opener) -> None:
    page = open_page()
    page.goto(portal.url)
    assert page.url == f"{portal.url}/portal/sign-in"
    page.goto(f"{portal.url}/portal/files/shared/notes.txt")
    assert "next=" in page.url
    page.get_by_label("Key").fill("svc_k_00000000000000000000000000000000_00")
    page.get_by_role("button", name="Sign in").click()
    assert "not valid" in page.get_by_role("alert").inner_text()
    page.get_by_label("Key").fill(portal.key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/portal/files/shared/notes.txt")
    assert page.locator("pre").inner_text() == "for all\n"


def test_nobody_is_led_to_another_site(portal: Portal) -> None:
    for wanted in (
        *("https://other.example/", "//other.example", "/portal/\\other.example", "/docs/"),
        *("/portal/%0d%0aset-cookie:%20x=y", "/portal/sign-in", "javascript:alert(1)"),
        *("/portal/../files/shared", "/portal/%252e%252e/files/shared", "/portal/files/.%252E/../x"),
    ):
        form = f"how=key&key={portal.key}&next={wanted}"
        answer = post(portal, "/portal/sign-in", form, Origin=portal.url)
        portal.secrets += [cookie.value for cookie in answer.cookies.values()]
        assert answer.headers["location"] == "/portal/", wanted


def test_cookies_are_out_of_reach_of_scripts_and_of_other_sites(session: dict[str, Any]) -> None:
    assert set(session) == {"svc_session", "svc_renewal"}
    for cookie in session.values():
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
        assert not cookie["secure"]  # by TLS: see the unit tests of the pipeline


def test_a_session_is_a_credential_for_pages_of_this_server_alone(
    portal: Portal, session: dict[str, Any]
) -> None:
    def put(**fields: str) -> Answer:
        return portal.ask("PUT", "/files/shared/by-cookie.txt", "x", Cookie=header_of(session), **fields)

    def get(**fields: str) -> int:
        return portal.ask("GET", "/files/shared/notes.txt", Cookie=header_of(session), **fields).status

    refused: tuple[dict[str, str], ...] = (
        {},
        {"Origin": "https://other.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site", "Origin": portal.url},
        {"Sec_Fetch_Site": "same-site"},
    )
    for fields in refused:
        answer = put(**fields)
        assert (answer.status, json.loads(answer.body)["code"]) == (403, "FORBIDDEN"), fields
    assert put(Origin=portal.url).status == 201
    assert put(Sec_Fetch_Site="same-origin").status == 200
    assert get() == 200
    assert get(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors") == 403
    assert get(Sec_Fetch_Site="same-origin", Sec_Fetch_Dest="script") == 403
    # Other credentials decide alone.
    assert get(Authorization="Bearer nothing") == 401


@pytest.mark.parametrize("path", ["files/shared", "sign-in", "sign-out", "renew"])
def test_forms_of_other_sites_are_refused(portal: Portal, session: dict[str, Any], path: str) -> None:
    forged: tuple[dict[str, str], ...] = (
        {},
        {"Origin": "https://other.example"},
        {"Sec_Fetch_Site": "cross-site"},
    )
    for fields in forged:
        form = "action=mkdir&name=forged"
        answer = post(portal, f"/portal/{path}", form, Cookie=header_of(session), **fields)
        assert answer.status == 403, (path, fields)
    fields = {"Authorization": f"Bearer {portal.token}"}
    assert portal.ask("GET", "/files/shared/forged", **fields).status == 404
    assert portal.ask("GET", "/portal/state", Cookie=header_of(session)).status == 200


def test_two_tabs_may_renew_at_once_and_both_go_on(portal: Portal, session: dict[str, Any]) -> None:
    old = header_of(session, "svc_renewal")
    first = post(portal, "/portal/renew", Cookie=old, Origin=portal.url)
    second = post(portal, "/portal/renew", Cookie=old, Origin=portal.url)
    assert (first.status, second.status) == (204, 204)
    assert set(first.cookies) == {"svc_session", "svc_renewal"}
    assert set(second.cookies) == {"svc_session"}
    for answer in (first, second):
        assert (
            portal.ask("GET", "/portal/state", Cookie=header_of(answer.cookies, "svc_session")).status == 200
        )
    # A page that finds the token at its end renews it by itself.
    page = portal.ask("GET", "/portal/state", Cookie=header_of(first.cookies, "svc_renewal"))
    assert (page.status, set(page.cookies)) == (200, {"svc_session", "svc_renewal"})
    # What ends the session ends the second tab's token too.
    post(portal, "/portal/sign-out", Cookie=header_of(page.cookies), Origin=portal.url)
    for answer in (first, second, page):
        assert portal.ask("GET", "/portal/state", Cookie=header_of(answer.cookies)).status == 303


def test_signing_out_ends_the_tokens_too(portal: Portal, session: dict[str, Any]) -> None:
    answer = post(portal, "/portal/sign-out", Cookie=header_of(session), Origin=portal.url)
    assert (answer.status, answer.headers["location"]) == (303, "/portal/sign-in")
    ended = answer.cookies
    assert [(ended[name].value, ended[name]["expires"][-17:]) for name in session] == [
        ("", "1970 00:00:00 GMT")
    ] * 2
    assert portal.ask("GET", "/files/shared/notes.txt", Cookie=header_of(session)).status == 401
    assert portal.ask("GET", "/portal/state", Cookie=header_of(session)).status == 303


@pytest.mark.parametrize("names", [("svc_session",), ("svc_renewal",)])
def test_signing_out_by_either_cookie_ends_it_also_when_another_tab_was_faster(
    portal: Portal, session: dict[str, Any], names: tuple[str, ...]
) -> None:
    newer = post(portal, "/portal/renew", Cookie=header_of(session, "svc_renewal"), Origin=portal.url)
    assert newer.status == 204
    post(portal, "/portal/sign-out", Cookie=header_of(session, *names), Origin=portal.url)
    for cookies in (session, newer.cookies):
        assert portal.ask("GET", "/portal/state", Cookie=header_of(cookies)).status == 303
    renewed = post(portal, "/portal/renew", Cookie=header_of(newer.cookies, "svc_renewal"), Origin=portal.url)
    assert renewed.status == 401


def test_every_page_of_a_session_shows_how_to_end_it(portal: Portal, as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root)
    for path in ("files/", "files/shared/notes.txt", "files/shared/notes.txt?do=copy", "state", "files/none"):
        page.goto(f"{portal.url}/portal/{path}")
        assert page.get_by_role("button", name="Sign out").count() == 1, path


def test_a_page_of_another_site_can_link_and_nothing_else(
    portal: Portal, browser: Browser, as_root: Any
) -> None:
    context = browser.new_context(storage_state=as_root)
    page = context.new_page()
    foreign = f"""<a href="{portal.url}/portal/files/shared">link</a>
        <form method="post" action="{portal.url}/portal/files/shared">
        <input name="name" value="forged"><button name="action" value="mkdir">form</button></form>"""
    page.route("http://other.example/", lambda route: route.fulfill(body=foreign, content_type="text/html"))
    page.goto("http://other.example/")
    page.get_by_role("link", name="link").click()
    expect(page.get_by_role("link", name="notes.txt", exact=True)).to_be_visible()
    page.goto("http://other.example/")
    with page.expect_response("**/portal/files/shared") as answer:
        page.get_by_role("button", name="form").click()
    assert answer.value.status == 403
    page.goto(f"{portal.url}/portal/files/shared")
    assert page.get_by_text("forged").count() == 0
    context.close()


def test_a_session_ends_with_its_key(portal: Portal, open_page: Opener) -> None:
    key, key_id = portal.user("leaver", shared="-r--l---")
    page = open_page()
    sign_in(page, portal, key)
    page.goto(f"{portal.url}/portal/files/shared")
    assert page.get_by_role("link", name="notes.txt", exact=True).count() == 1
    portal.send("DELETE", f"/auth/keys/admin/{key_id}")
    page.goto(f"{portal.url}/portal/files/shared")
    assert "/portal/sign-in" in page.url
    assert [cookie["name"] for cookie in page.context.cookies() if "svc_" in cookie["name"]] == []


def test_failed_sign_ins_are_counted_with_all_others(portal: Portal) -> None:
    # By key: the address of this machine is that of all other tests.
    key, _ = portal.user("guessed")
    wrong = key[:-8] + "00000000"
    form = f"how=key&key={wrong}"
    assert {post(portal, "/portal/sign-in", form, Origin=portal.url).status for _ in range(3)} == {403}
    body = json.dumps({"api_key": wrong})
    more = [
        portal.ask("POST", "/auth/token", body, Content_Type="application/json").status for _ in range(20)
    ]
    assert more[-1] == 429
    answer = post(portal, "/portal/sign-in", form, Origin=portal.url)
    assert answer.status == 429
    assert int(answer.headers["retry-after"]) > 0
