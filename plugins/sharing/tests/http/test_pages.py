"""The pages that a link opens: what they show, what they hide, and how a browser is protected."""

from __future__ import annotations

import base64
import hashlib
import logging
import re

import pytest

from svc.plugin import ROOT_USER_ID
from svc_sharing.page.listing import message_page, page_url, shown_size

from ..conftest import Http  # noqa: TID252


@pytest.fixture
def files(http: Http) -> Http:
    http.write("/a/plans/one.txt", "/a/plans/deep/two.txt", "/a/secret.txt", "/b/other.txt", "/b/single.txt")
    return http


def names(page: str) -> list[str]:
    """The names that a page lists."""
    return re.findall(r"<span>([^<]*)</span>", page)


def hrefs(page: str) -> list[str]:
    return re.findall(r'href="([^"]*)"', page)


def test_the_first_page_loads_nothing_and_runs_its_own_script_alone(http: Http) -> None:
    page = http.get("/share", token=None)
    assert page.status_code == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert not re.search(r"""(?:src|href)=|url\(|https?://|@import""", page.text)
    policy = page.headers["Content-Security-Policy"]
    for element in ("script", "style"):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert (page.headers["Referrer-Policy"], page.headers["X-Frame-Options"]) == ("no-referrer", "DENY")


def test_a_key_becomes_a_cookie_for_reading_below_share_alone(files: Http) -> None:
    link = files.link("/a/plans")
    opened = files.open(link["token"])
    assert (opened.status_code, opened.headers["Cache-Control"]) == (200, "no-store")
    assert opened.json["next"] == "/share/files/"
    assert 0 < opened.json["expires_in"] <= 43_200
    cookie = opened.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/share" in cookie
    assert "Secure" not in cookie
    sent = {"Cookie": files.cookie_of(link["token"])}
    assert files.get("/share/files/a/plans", token=None, fields=sent).status_code == 200
    for method, path in (
        ("GET", "/system/whoami"),
        ("GET", "/files/shared-with-me"),
        ("POST", "/files/share"),
    ):
        assert files(method, path, token=None, fields=sent).status_code == 401
    assert files("POST", "/share/files/a/plans", token=None, fields=sent).status_code == 405


def test_a_cookie_is_for_tls_where_the_page_came_by_tls(files: Http) -> None:
    key = files.link("/a/plans")["token"]
    for options in ({"protocol": "https"}, {"fields": {"Origin": "https://files.example.org"}}):
        cookie = files.open(key, **options).headers["Set-Cookie"]
        name, *attributes = cookie.split("; ")
        assert name.startswith("__Host-svc_share=")
        assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)
        assert not any(one.startswith("Domain") for one in attributes)
        sent = {"Cookie": name}
        assert files.get("/share/files/a/plans", token=None, fields=sent).status_code == 200
        assert files.get("/system/whoami", token=None, fields=sent).status_code == 401
        assert files("POST", "/share/files/a/plans", token=None, fields=sent).status_code == 405


def test_what_is_no_key_of_a_link_opens_nothing(files: Http) -> None:
    secret = files.link("/a/plans")["token"].rpartition("_")[2]
    user_id, _ = files.user("ann")
    for key in (
        "",
        "x" * 3000,
        secret,
        files.link("/a/plans")["token"][:-1] + "g",
        files.key_of(ROOT_USER_ID),
        files.key_of(user_id),
        files.key_of(ROOT_USER_ID, [{"/a/**": "-r--l---"}]),
    ):
        refused = files.open(key)
        assert (refused.status_code, refused.json["code"]) == (401, "AUTH_REQUIRED")
        assert "Set-Cookie" not in refused.headers
        assert not key or key not in refused.text
    for body in (b"", b"[]", b'{"key":7}', b'{"key":"x","more":1}', b'{"key":"' + b"x" * 5000):
        fields = {"Content-Type": "application/json"}
        answer = files("POST", "/share/session", token=None, fields=fields, body=body)
        assert answer.status_code in (400, 413)


def test_whoever_tries_many_keys_has_to_wait_and_links_that_work_do_all_the_same(files: Http) -> None:
    key = files.link("/a/plans")["token"]
    here, there = {"REMOTE_ADDR": "203.0.113.7"}, {"REMOTE_ADDR": "203.0.113.8"}
    statuses = [files.open("wrong", extras=here).status_code for _ in range(31)]
    assert statuses == [401] * 30 + [429]
    refused = files.open("wrong", extras=here)
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
    assert files.open(key, extras=there).status_code == 200
    assert files.open(key, extras=here).status_code == 200, "a link that works is not held up"


def test_who_opens_a_link_and_who_does_not_is_written(files: Http, caplog: pytest.LogCaptureFixture) -> None:
    link = files.link("/a/plans")
    caplog.set_level(logging.INFO, "svc.plugin.auth.self.sign-in")
    assert files.open(link["token"]).status_code == 200
    assert files.open("wrong", extras={"REMOTE_ADDR": "203.0.113.99"}).status_code == 401
    good, wrong = [vars(record)["fields"] for record in caplog.records if record.name.endswith("sign-in")]
    assert (good["how"], good["key_id"], good["user_id"]) == ("share link", link["key_id"], None)
    assert (wrong["how"], wrong["remote"]) == ("share link", "203.0.113.99")
    assert wrong["reason"] == "it is no key of a link that works"
    assert link["token"] not in caplog.text + str(good)


def test_a_directory_is_a_page_with_names_sizes_and_times(files: Http) -> None:
    cookie = files.cookie_of(files.link("/a/plans")["token"])
    start = files.page("", cookie)
    assert (start.status_code, start.headers["Location"]) == (303, "/share/files/a/plans")
    page = files.page("a/plans", cookie)
    assert page.status_code == 200
    assert names(page.text) == ["deep/", "one.txt"]
    assert "16 B" in page.text
    assert re.search(r'<time datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ">', page.text)
    assert "This link works until" in page.text
    assert page.headers["Cache-Control"] == "private, no-store"
    assert "script-src" not in page.headers["Content-Security-Policy"]
    below = files.page("a/plans/deep", cookie)
    assert names(below.text) == ["two.txt"]
    assert '<a href="/share/files/a/plans">plans</a> /' in below.text


def test_nothing_of_parents_and_siblings_shows(files: Http) -> None:
    cookie = files.cookie_of(files.link("/a/plans", "/b/single.txt")["token"])
    start = files.page("", cookie)
    assert start.status_code == 200
    assert names(start.text) == ["plans/", "single.txt"]
    pages = start.text + files.page("a/plans", cookie).text + files.page("a/plans/deep", cookie).text
    for hidden in ("secret", "other"):
        assert hidden not in pages
    absent = files.page("a/nothing", cookie)
    for path in (
        "a",
        "b",
        "a/",
        "a/secret.txt",
        "b/other.txt",
        "a/plans/../secret.txt",
        "a/plans%2f..%2fsecret.txt",
    ):
        answer = files.page(path, cookie)
        if "2f" in path or ".." in path:
            assert answer.status_code in (400, 404)
            continue
        assert (answer.status_code, answer.text) == (404, absent.text), path
        assert set(answer.headers) == set(absent.headers)


def test_a_file_comes_whole_or_in_part_and_again_when_it_changed(files: Http) -> None:
    cookie = files.cookie_of(files.link("/b/single.txt")["token"])
    start = files.page("", cookie)
    assert names(start.text) == ["single.txt"]
    whole = files.page("b/single.txt", cookie)
    assert (whole.status_code, whole.text) == (200, "/b/single.txt")
    assert whole.headers["Content-Disposition"] == "inline; filename*=UTF-8''single.txt"
    part = files.page("b/single.txt", cookie, Range="bytes=3-8")
    assert (part.status_code, part.text) == (206, "single")
    assert part.headers["Content-Range"] == "bytes 3-8/13"
    assert files.page("b/single.txt", cookie, Range="bytes=99-").status_code == 416
    again = files.page("b/single.txt", cookie, **{"If-None-Match": whole.headers["ETag"]})
    assert again.status_code == 304
    assert "private" in whole.headers["Cache-Control"]
    head = files("HEAD", "/share/files/b/single.txt", token=None, fields={"Cookie": cookie})
    assert (head.status_code, head.content, head.headers["Content-Length"]) == (200, b"", "13")


@pytest.mark.parametrize(
    ("content_type", "shown"),
    [
        ("text/html", False),
        ("image/svg+xml", False),
        ("text/xml; charset=utf-8", False),
        ("", False),
        ("TEXT/HTML", False),
        ("image/png", True),
        ("text/plain; charset=utf-8", True),
        ("video/webm", True),
        ("application/pdf", True),
    ],
)
def test_what_could_run_is_downloaded_and_nothing_is_guessed(
    files: Http, content_type: str, shown: bool
) -> None:
    with files.database.transaction() as transaction:
        transaction.put(("b", "single.txt"), b"<script>1</script>", content_type=content_type or None)
    cookie = files.cookie_of(files.link("/b")["token"])
    answer = files.page("b/single.txt", cookie)
    assert answer.headers["Content-Disposition"].startswith("inline" if shown else "attachment")
    policy = answer.headers["Content-Security-Policy"]
    # A sandbox takes the cookie from the player.
    assert policy.startswith("default-src 'none'; " if shown else "sandbox; default-src 'none'; ")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_hostile_names_stay_text(files: Http) -> None:
    name = "<script>alert(1)&\"' \u202etxt.exe"
    with files.database.transaction() as transaction:
        transaction.put(("b", name), b"x")
        transaction.put(("b", "\u00fc #?%.txt"), b"y")
    cookie = files.cookie_of(files.link("/b")["token"])
    page = files.page("b", cookie).text
    assert "<script" not in page
    found = [href for href in hrefs(page) if href.startswith("/share/files/b/")]
    assert page_url(("b", "\u00fc #?%.txt")) in found
    answer = files.page(page_url(("b", name)).removeprefix("/share/files/"), cookie)
    assert (answer.status_code, answer.content) == (200, b"x")
    assert answer.headers["Content-Disposition"].isascii()
    assert files.page("b/%C3%BC%20%23%3F%25.txt", cookie).content == b"y"


def test_long_directories_come_in_pages(files: Http) -> None:
    files.write(*(f"/many/{number:04}" for number in range(1100)))
    cookie = files.cookie_of(files.link("/many")["token"])
    path, found = "many", []
    while path:
        page = files.page(path, cookie).text
        found += names(page)
        following = re.search(r'<a rel="next" href="/share/files/([^"]*)"', page)
        path = "" if following is None else following[1].replace("&amp;", "&")
    assert found == [f"{number:04}" for number in range(1100)]


def test_links_within_lead_on_and_links_out_do_not_show(files: Http) -> None:
    with files.database.transaction() as transaction:
        transaction.link(("a", "plans", "inside"), "/a/plans/deep")
        transaction.link(("a", "plans", "file"), "/a/plans/one.txt")
        transaction.link(("a", "plans", "outside"), "/a/secret.txt")
        transaction.link(("a", "plans", "up"), "/a")
        transaction.link(("a", "plans", "around"), "/a/plans/around")
        transaction.link(("a", "plans", "dangling"), "/a/plans/nothing")
        transaction.link(("a", "plans", "system"), "/.svc-system")
    cookie = files.cookie_of(files.link("/a/plans")["token"])
    assert names(files.page("a/plans", cookie).text) == ["deep/", "file", "inside/", "one.txt"]
    assert names(files.page("a/plans/inside", cookie).text) == ["two.txt"]
    assert files.page("a/plans/inside/two.txt", cookie).text == "/a/plans/deep/two.txt"
    assert files.page("a/plans/file", cookie).text == "/a/plans/one.txt"
    for name in ("outside", "up", "up/secret.txt", "around", "dangling", "system"):
        assert files.page(f"a/plans/{name}", cookie).status_code == 404


def test_without_a_link_there_is_a_page_that_says_so_and_programs_get_json(files: Http) -> None:
    link = files.link("/a/plans")
    cookie = files.cookie_of(link["token"])
    files("DELETE", f"/files/share-links/{link['key_id']}")
    for sent in (None, cookie, "svc_share=", "svc_share=x.y.z", "other=1"):
        answer = files.page("a/plans", sent)
        assert (answer.status_code, answer.content) == (401, message_page(401))
        assert answer.headers["Cache-Control"] == "no-store"
    told = files.get("/share/files/a/plans", token=None, fields={"Cookie": cookie})
    assert (told.status_code, told.json["code"]) == (401, "AUTH_REQUIRED")


def test_the_pages_are_for_links_not_for_accounts(files: Http) -> None:
    _, ann = files.user("ann")
    for token in (files.root, ann):
        assert files.get("/share/files/", token=token).status_code in (403, 404)
        assert files.get("/share/files/a/plans", token=token).status_code in (403, 404)


def test_a_link_without_the_right_to_list_shows_its_name_and_no_more(files: Http) -> None:
    cookie = files.cookie_of(files.link("/a/plans", "/b", permissions="-r------")["token"])
    assert names(files.page("", cookie).text) == ["plans/", "b/"]
    assert files.page("a/plans", cookie).status_code == 404
    assert files.page("a/plans/one.txt", cookie).status_code == 200


def test_what_was_shared_and_is_gone_is_left_out(files: Http) -> None:
    cookie = files.cookie_of(files.link("/a/plans")["token"])
    with files.database.transaction() as transaction:
        transaction.delete(("a", "plans"), recursive=True)
    start = files.page("", cookie)
    assert (start.status_code, names(start.text)) == (200, [])
    assert files.page("a/plans", cookie).status_code == 404


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_400, "99.4 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
    ],
)
def test_sizes_are_for_people(size: int, shown: str) -> None:
    assert shown_size(size) == shown
