"""Listings: pages, depth, globs, totals, deleted files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Http  # noqa: TID252


def test_an_item_says_everything_about_its_entry(http: Http) -> None:
    stored = http.put("/files/d/a.txt", b"hello").json
    http.post("/files/batch", {"operations": [{"op": "link", "path": "/d/l", "target": "/d/a.txt"}]})
    file, link = http.get("/files/d").json["items"]
    assert file == {
        "path": "/d/a.txt",
        "name": "a.txt",
        "entry_type": 2,
        "hash": stored["content_hash"],
        "size": 5,
        "created_at": stored["created_at"],
        "updated_at": stored["updated_at"],
        "content_type": "text/plain",
    }
    assert (link["entry_type"], link["target"], link["content_type"]) == (8, "/d/a.txt", None)
    (directory,) = http.get("/files").json["items"]
    assert (directory["entry_type"], directory["file_count"], directory["total_size"]) == (3, 1, 5)


def test_an_empty_directory_lists_nothing(http: Http) -> None:
    answer = http.get("/files").json
    assert answer == {"path": "/", "items": [], "total": 0, "has_more": False, "next_cursor": None}
    assert http.get("/files", params={"depth": "-1"}).json == answer


def test_pages_by_cursor_show_everything_once_while_others_write(http: Http) -> None:
    names = [f"/f{number:03}" for number in range(25)]
    http.fill(*names)
    seen: list[str] = []
    cursor = None
    while True:
        params = {"limit": "7"} | ({"after": cursor} if cursor else {})
        page = http.get("/files", params=params).json
        seen += [item["path"] for item in page["items"]]
        if not page["has_more"]:
            break
        cursor = page["next_cursor"]
        http.fill("/a-new-one-before")
        http.delete(f"/files{seen[-1]}")
    assert [path for path in seen if path != "/a-new-one-before"] == names
    assert page["next_cursor"] is None


def test_pages_by_offset(http: Http) -> None:
    http.fill(*[f"/f{number}" for number in range(9)])
    page = http.get("/files", params={"offset": "6", "limit": "2"}).json
    assert [item["name"] for item in page["items"]] == ["f6", "f7"]
    assert (page["total"], page["has_more"]) == (9, True)
    assert http.items("/files", params={"offset": "100"}) == []


def test_the_default_limit_and_the_largest_one(http: Http) -> None:
    http.fill(*[f"/d/f{number:05}" for number in range(1001)])
    for depth in ("0", "1", "-1"):
        page = http.get("/files/d", params={"depth": depth}).json
        assert (len(page["items"]), page["has_more"]) == (1000, True)
        assert page["total"] == (None if depth == "1" else 1001)
        whole = http.get("/files/d", params={"depth": depth, "limit": "10000"}).json
        assert (len(whole["items"]), whole["has_more"], whole["total"]) == (1001, False, 1001)
        refused = http.get("/files/d", params={"depth": depth, "limit": "10001"})
        assert (refused.status_code, refused.json["limit"]) == (400, 10_000)


def test_both_limits_are_settings(http: Http, set_limits: Callable[..., None]) -> None:
    http.fill("/a", "/b", "/c", "/d")
    set_limits(listing_default=2, listing_maximum=3)
    assert len(http.items("/files")) == 2
    assert len(http.items("/files", params={"limit": "3", "depth": "-1"})) == 3
    assert http.get("/files", params={"limit": "4"}).status_code == 400
    set_limits(listing_default=5, listing_maximum=3)
    assert len(http.items("/files")) == 3


def test_a_depth_lists_files_only_in_path_order(http: Http) -> None:
    http.fill("/b/z", "/b/c/d/e", "/a", "/b-", "/b/c/x")
    http.post("/files/batch", {"operations": [{"op": "link", "path": "/link", "target": "/a"}]})
    everything = ["/a", "/b/c/d/e", "/b/c/x", "/b/z", "/b-"]
    assert http.items("/files", params={"depth": "-1"}) == everything
    assert http.items("/files", params={"depth": "1"}) == ["/a", "/b/z", "/b-"]
    assert http.items("/files", params={"depth": "2"}) == ["/a", "/b/c/x", "/b/z", "/b-"]
    assert http.items("/files/b", params={"depth": "-1"}) == ["/b/c/d/e", "/b/c/x", "/b/z"]
    assert http.get("/files", params={"depth": "-1"}).json["total"] == 5


def test_a_deep_listing_goes_on_where_its_pages_ended(http: Http) -> None:
    http.fill(*[f"/d{number % 3}/f{number:02}" for number in range(60)])
    whole = http.get("/files", params={"depth": "-1"}).json
    seen: list[str] = []
    params = {"depth": "-1", "limit": "13"}
    while True:
        page = http.get("/files", params=params).json
        assert page["total"] == 60
        seen += [item["path"] for item in page["items"]]
        if not page["has_more"]:
            break
        params["after"] = page["next_cursor"]
    assert seen == [item["path"] for item in whole["items"]]


@pytest.mark.parametrize(
    ("glob", "depth", "expected"),
    [
        ("*.txt", "0", ["/a.txt"]),
        ("?.txt", "0", ["/a.txt"]),
        ("*", "0", ["/a.txt", "/b.md", "/d"]),
        ("*.txt", "-1", ["/a.txt", "/d/c.txt", "/d/e/f.txt"]),
        ("d/*.txt", "-1", ["/d/c.txt"]),
        ("/d/*.txt", "-1", ["/d/c.txt"]),
        ("**/f.txt", "-1", ["/d/e/f.txt"]),
        ("d/**", "-1", ["/d/c.txt", "/d/e/f.txt"]),
        ("**", "-1", ["/a.txt", "/b.md", "/d/c.txt", "/d/e/f.txt"]),
        ("d/**/*.txt", "-1", ["/d/c.txt", "/d/e/f.txt"]),
        ("[ab].*", "0", ["/a.txt", "/b.md"]),
        ("nothing", "-1", []),
    ],
)
def test_a_glob_fits_the_name_the_relative_and_the_full_path(
    http: Http, glob: str, depth: str, expected: list[str]
) -> None:
    http.fill("/a.txt", "/b.md", "/d/c.txt", "/d/e/f.txt")
    page = http.get("/files", params={"glob": glob, "depth": depth}).json
    assert [item["path"] for item in page["items"]] == expected
    assert page["total"] == len(expected)


def test_a_relative_glob_is_relative_to_the_directory(http: Http) -> None:
    http.fill("/d/e/f.txt", "/d/e/g/f.txt")
    assert http.items("/files/d", params={"glob": "e/*", "depth": "-1"}) == ["/d/e/f.txt"]
    assert http.items("/files/d", params={"glob": "d/e/*", "depth": "-1"}) == ["/d/e/f.txt"]


def test_a_page_of_a_glob_goes_on_where_it_ended(http: Http) -> None:
    http.fill(*[f"/{kind}{number}" for number in range(10) for kind in "ab"])
    first = http.get("/files", params={"glob": "b*", "limit": "4"}).json
    second = http.get("/files", params={"glob": "b*", "limit": "40", "after": first["next_cursor"]}).json
    assert [item["name"] for item in first["items"] + second["items"]] == [
        f"b{number}" for number in range(10)
    ]
    assert (first["total"], second["total"]) == (None, None)


def test_a_total_that_only_a_walk_could_tell_is_null(http: Http) -> None:
    http.fill(*[f"/f{number:02}" for number in range(12)])
    assert http.get("/files", params={"glob": "*", "limit": "1"}).json["total"] is None
    assert http.get("/files", params={"limit": "1"}).json["total"] == 12
    assert http.get("/files", params={"limit": "1", "depth": "-1"}).json["total"] == 12
    assert http.get("/files", params={"limit": "1", "depth": "1"}).json["total"] is None
    for query in ({"depth": "-1"}, {"offset": "5"}, {"offset": "11"}, {"offset": "50"}):
        complete = http.get("/files", params={"glob": "*", **query}).json
        assert (complete["total"], complete["has_more"]) == (12, False)


@pytest.mark.parametrize(
    "params",
    [
        {"limit": "0"},
        {"limit": "x"},
        {"limit": "-1"},
        {"offset": "-1"},
        {"depth": "-2"},
        {"depth": "1.5"},
        {"after": "!"},
        {"after": "eA"},
        {"after": "MS9h", "offset": "1"},
        {"glob": ""},
        {"glob": "x" * 1025},
        {"limit": "9" * 5000},
        {"nofollow": "maybe"},
    ],
)
def test_a_malformed_parameter_is_400(http: Http, params: dict[str, str]) -> None:
    answer = http.get("/files", params=params)
    assert (answer.status_code, answer.json["code"]) == (400, "INVALID_INPUT")


def test_a_listing_has_an_etag_and_is_304_when_it_did_not_change(http: Http) -> None:
    http.fill("/d/a")
    etag = http.get("/files/d").headers["etag"]
    assert http.get("/files/d", headers={"If-None-Match": etag}).status_code == 304
    http.fill("/d/b")
    assert http.get("/files/d", headers={"If-None-Match": etag}).status_code == 200


def test_head_of_a_directory_describes_it(http: Http) -> None:
    http.fill("/d/a")
    for params in ({}, {"depth": "-1"}):
        answer = http("HEAD", "/files/d", params=params)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["x-svc-entry-type"] == "directory"
        assert answer.headers["x-svc-path"] == "/d"


def test_deleted_files_are_listed_among_the_others_when_asked(http: Http) -> None:
    http.fill("/a", "/b", "/c", "/d/e", "/d/f/g")
    http.delete("/files/b")
    http.delete("/files/d/f/g")
    page = http.get("/files", params={"deleted": "true"}).json
    assert [(item["name"], item.get("deleted", False)) for item in page["items"]] == [
        ("a", False),
        ("b", True),
        ("c", False),
        ("d", False),
    ]
    assert page["total"] == 4
    assert page["items"][1]["deleted_at"] > 0
    deep = http.items("/files", params={"deleted": "true", "depth": "-1"})
    assert deep == ["/a", "/b", "/c", "/d/e", "/d/f/g"]
    first = http.get("/files", params={"deleted": "true", "limit": "2"}).json
    rest = http.items("/files", params={"deleted": "true", "after": first["next_cursor"]})
    assert rest == ["/c", "/d"]
    assert http.items("/files", params={"deleted": "true", "glob": "b"}) == ["/b"]
    assert http.items("/files") == ["/a", "/c", "/d"]


def test_deleted_files_belong_to_head_only(http: Http) -> None:
    version = http.put("/files/a", b"x").json["version"]
    assert http.get("/files", params={"deleted": "true", "version": version}).status_code == 400
