"""Links over HTTP: how they are made, listed and ended, and what their keys open."""

from __future__ import annotations

import time
from typing import Any

import pytest

from svc.plugin import ROOT_USER_ID
from svc_sharing import links
from svc_sharing.links import list_links, prune_links

from ..conftest import Http  # noqa: TID252

DAY_MS = 86_400_000


@pytest.fixture
def files(http: Http) -> Http:
    http.write("/plans/a", "/plans/deep/b", "/plans secret", "/plansx/c", "/single.txt", "/single.txt.old")
    return http


def test_a_link_is_a_url_with_a_key_that_is_shown_this_once(files: Http) -> None:
    before = time.time_ns() // 1_000_000
    made = files.post(
        "/files/share-link", {"paths": ["/plans"], "base_url": "https://files.example.org/svc/"}
    )
    assert (made.status_code, made.headers["Cache-Control"]) == (201, "no-store")
    link = made.json
    assert set(link) == {"url", "token", "key_id", "permissions", "expires_at", "paths"}
    assert link["token"].startswith("svc_k_")
    assert link["url"] == f"https://files.example.org/svc/share#{link['token']}"
    assert (link["permissions"], link["paths"]) == ("-r--l---", ["/plans"])
    assert 0 <= link["expires_at"] - before - 30 * DAY_MS < 60_000
    listed = files.get("/files/share-links").text
    assert link["key_id"] in listed
    assert link["token"] not in listed
    assert link["token"].rpartition("_")[2] not in listed
    assert files.link("/single.txt")["url"].startswith("/share#svc_k_")


def test_the_key_of_a_link_opens_its_paths_and_nothing_beside(files: Http) -> None:
    link = files.link("/plans", "/single.txt", permissions="-ru-l---")
    token = files.token_of(link["token"])
    (key,) = [key for key in files.get("/auth/keys").json if key["key_id"] == link["key_id"]]
    assert (key["user_id"], key["rules"]) == (
        None,
        [{"/plans/**": "-ru-l---"}, {"/single.txt": "-ru-l---"}],
    )
    whoami = files.get("/system/whoami", token=token).json
    assert whoami["user_id"] is None
    for root_only in ("/files/share-links", "/system/plugins"):
        assert files.get(root_only, token=token).status_code == 403


def test_links_are_listed_by_path_in_pages_with_who_made_them(files: Http) -> None:
    first, second = files.link("/plans"), files.link("/plans", "/single.txt", expires_in_days=1)
    whole = files.get("/files/share-links").json
    assert [link["key_id"] for link in whole["links"]] == [first["key_id"], second["key_id"]]
    assert whole["links"][1]["created_by"] == ROOT_USER_ID
    assert whole["links"][1]["paths"] == ["/plans", "/single.txt"]
    by_path = files.get("/files/share-links", params={"path": "/single.txt"}).json["links"]
    assert [link["key_id"] for link in by_path] == [second["key_id"]]
    assert files.get("/files/share-links", params={"path": "/plans/a"}).json["links"] == []
    page = files.get("/files/share-links", params={"limit": 1}).json
    assert (page["has_more"], page["links"]) == (True, whole["links"][:1])
    rest = files.get("/files/share-links", params={"limit": 1, "after": page["next_cursor"]}).json
    assert rest["links"] == whole["links"][1:]


def test_an_ended_link_ends_what_was_signed_in_by_it_at_once(files: Http) -> None:
    link, other = files.link("/plans"), files.link("/plans")
    token, cookie, kept = (
        files.token_of(link["token"]),
        files.cookie_of(link["token"]),
        files.cookie_of(other["token"]),
    )
    assert files.page("plans", cookie).status_code == 200
    ended = files("DELETE", f"/files/share-links/{link['key_id']}")
    assert (ended.status_code, ended.json) == (200, {"revoked": True, "key_id": link["key_id"]})
    assert files.page("plans", cookie).status_code == 401
    assert files.get("/system/whoami", token=token).status_code == 401
    assert files.post("/auth/token", {"api_key": link["token"]}, token=None).status_code == 401
    assert files.open(link["token"]).status_code == 401
    assert files.page("plans", kept).status_code == 200
    assert [item["key_id"] for item in files.get("/files/share-links").json["links"]] == [other["key_id"]]
    for gone in (link["key_id"], "nothing", "7f0a2b1c-0000-4000-8000-000000000001"):
        assert files("DELETE", f"/files/share-links/{gone}").status_code == 404


def test_a_link_whose_key_was_revoked_is_not_listed_and_its_records_go(files: Http) -> None:
    link, kept = files.link("/plans"), files.link("/plans")
    assert files("DELETE", f"/auth/keys/{link['key_id']}").status_code == 200
    for params in ({}, {"path": "/plans"}):
        listed = files.get("/files/share-links", params=params).json["links"]
        assert [item["key_id"] for item in listed] == [kept["key_id"]]
    assert prune_links(files.database, None) == (1, None)
    assert prune_links(files.database, None) == (0, None)
    system = files.database.system()
    assert [name for name, _ in system.entries(("share-links", "by-id"))] == [kept["key_id"]]
    assert files("DELETE", f"/files/share-links/{link['key_id']}").status_code == 404


def test_expired_links_are_pruned_page_by_page(files: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_PRUNED_AT_ONCE", 2)
    for _ in range(5):
        files.link("/plans", expires_in_days=1)
    lasting = files.link("/plans", expires_in_days=10)
    later = time.time_ns() // 1_000_000 + 2 * DAY_MS
    assert len(list_links(files.database.system(), None, limit=10, after=None)[0]) == 6
    found, _ = list_links(files.database.system(), None, limit=10, after=None, now_ms=later)
    assert [link.key_id for link in found] == [lasting["key_id"]]
    removed, after = prune_links(files.database, None, later)
    while after is not None:
        more, after = prune_links(files.database, after, later)
        removed += more
    assert removed == 5


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"paths": ["/missing"]}, 404, None),
        ({"paths": ["/.system"]}, 404, None),
        ({"paths": []}, 400, "paths"),
        ({"paths": ["/odd/what?"]}, 400, "paths"),
        ({"paths": ["/odd/*/c"]}, 400, "paths"),
        ({"paths": ["/odd/**"]}, 400, "paths"),
        ({"paths": ["/link"]}, 400, "paths"),
        ({"paths": [f"/plans/{number}" for number in range(101)]}, 413, "paths"),
        ({"permissions": "--------"}, 400, "permissions"),
        ({"permissions": "-r--l--"}, 400, "permissions"),
        ({"expires_in_days": 0}, 400, "expires_in_days"),
        ({"expires_in_days": 3651}, 400, "expires_in_days"),
        ({"expires_in_days": 10**30}, 400, None),
        ({"base_url": "javascript:alert(1)"}, 400, "base_url"),
        ({"base_url": "https://x.example/?a=b"}, 400, "base_url"),
        ({"base_url": "https://user@x.example"}, 400, "base_url"),
        ({"base_url": "https://x.example/#here"}, 400, "base_url"),
        ({"base_url": "https://[x"}, 400, "base_url"),
        ({"base_url": 'https://x.example/">'}, 400, "base_url"),
    ],
)
def test_what_a_link_cannot_be_for_is_refused(
    files: Http, change: dict[str, Any], status: int, field: str | None
) -> None:
    files.write("/odd/what?", "/odd/*/c", "/odd/**")
    with files.database.transaction() as transaction:
        transaction.link(("link",), "/plans")
    before = files.database.head().sequence
    answer = files.post("/files/share-link", {"paths": ["/plans"], **change})
    assert answer.status_code == status, answer.text
    assert field is None or answer.json["field"] == field
    assert files.database.head().sequence == before


def test_names_that_look_like_globs_in_other_languages_are_themselves(files: Http) -> None:
    files.write("/[ab]/x", "/a/x", "/{a,b}/y", "/a b/\u00e9.txt")
    for path, beside in (("/[ab]", "a/x"), ("/{a,b}", "a/x"), ("/a b", "a/x")):
        cookie = files.cookie_of(files.link(path)["token"])
        assert files.page(path, cookie).status_code == 200
        assert files.page(beside, cookie).status_code == 404


def test_only_root_makes_lists_and_ends_links(files: Http) -> None:
    link = files.link("/plans")
    _, ann = files.user("ann")
    scoped = files.token_of(files.key_of(ROOT_USER_ID, [{"/plans/**": "crudlify"}]))
    bearer = files.token_of(link["token"])
    for token, status in ((ann, 403), (scoped, 403), (bearer, 403), (None, 401)):
        assert files.post("/files/share-link", {"paths": ["/plans"]}, token=token).status_code == status
        assert files.get("/files/share-links", token=token).status_code == status
        ended = files("DELETE", f"/files/share-links/{link['key_id']}", token=token)
        assert ended.status_code == status


def test_a_share_of_everything_does_not_open_the_systems_tree(files: Http) -> None:
    cookie = files.cookie_of(files.link("/")["token"])
    page = files.page("", cookie)
    assert page.status_code == 200
    assert "plansx" in page.text
    for system in (".svc-system", ".system", ".svc-system/api-keys"):
        assert files.page(system, cookie).status_code == 404
