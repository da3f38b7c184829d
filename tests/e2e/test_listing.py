"""GET of a directory: items, totals, pages, globs and depth."""

from __future__ import annotations

import html
import re
from itertools import pairwise
from typing import Any

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files, links


@pytest.fixture
def tree(http: Client, area: str) -> str:
    """A small tree: three files on top, a directory of five, one nested in that, and a link."""
    for name in ("b.txt", "a.txt", "c.md"):
        http.store(f"{area}/{name}", name.encode() * 2, {"Content-Type": "text/plain"})
    for number in range(5):
        http.store(f"{area}/sub/n{number}.txt", b"x" * number)
    http.store(f"{area}/sub/deep/er/leaf.md", b"leaf")
    response = http.send_json("PUT", links(f"{area}/link"), {"target": f"{area}/a.txt"})
    assert response.status == 201
    return area


def all_pages(http: Client, path: str, limit: int | None, **query: object) -> list[dict[str, Any]]:
    """Every item of a listing, page by page over cursors."""
    items: list[dict[str, Any]] = []
    if limit is not None:
        query["limit"] = limit
    page = http.listing(path, **query)
    for _ in range(10_000):
        items += page["items"]
        if limit is not None:
            assert len(page["items"]) <= limit
        assert page["has_more"] == bool(page["next_cursor"])
        if not page["has_more"]:
            return items
        page = http.listing(path, after=page["next_cursor"], **query)
    raise AssertionError("the pages never end")


def test_the_answer_describes_the_directory(http: Client, tree: str) -> None:
    value = http.listing(tree, limit=100)
    assert value["path"] == tree
    assert value["total"] == 5
    assert value["has_more"] is False
    assert not value["next_cursor"]
    assert [item["name"] for item in value["items"]] == ["a.txt", "b.txt", "c.md", "link", "sub"]


@pytest.mark.parametrize("depth", [0, -1])
def test_head_states_no_other_length_than_get(http: Client, tree: str, depth: int) -> None:
    response = http.get(files(tree), depth=depth)
    head = http.head(files(tree), depth=depth)
    assert (head.status, head.body) == (200, b"")
    assert head["Content-Type"] == response["Content-Type"]
    assert "Content-Length" not in head or int(head["Content-Length"]) == len(response.body)


def test_the_item_of_a_file(http: Client, tree: str) -> None:
    item = http.listing(tree, limit=100)["items"][0]
    content = b"a.txta.txt"
    head = http.head(files(f"{tree}/a.txt"))
    assert item["path"] == f"{tree}/a.txt"
    assert item["entry_type"] == 2
    assert item["hash"] == blake3(content).hexdigest()
    assert item["size"] == len(content)
    assert item["content_type"] == "text/plain"
    assert str(item["created_at"]) == head["X-Svc-Created-At"]
    assert str(item["updated_at"]) == head["X-Svc-Updated-At"]


def test_the_item_of_a_directory_carries_the_totals_of_everything_below(http: Client, tree: str) -> None:
    item = http.listing(tree, limit=100)["items"][-1]
    assert (item["path"], item["entry_type"]) == (f"{tree}/sub", 3)
    assert item["file_count"] == 6
    assert item["total_size"] == 0 + 1 + 2 + 3 + 4 + 4
    http.store(f"{tree}/sub/deep/more", b"12345")
    item = http.listing(tree, limit=100)["items"][-1]
    assert (item["file_count"], item["total_size"]) == (7, 19)
    http.delete(files(f"{tree}/sub/n4.txt"))
    item = http.listing(tree, limit=100)["items"][-1]
    assert (item["file_count"], item["total_size"]) == (6, 15)


def test_the_item_of_a_link_names_its_target(http: Client, tree: str) -> None:
    item = http.listing(tree, limit=100)["items"][3]
    assert (item["entry_type"], item["target"]) == (8, f"{tree}/a.txt")


def test_the_headers_of_a_directory(http: Client, tree: str) -> None:
    for response in (http.get(files(tree)), http.head(files(tree))):
        assert response.status == 200
        assert response["X-Svc-Entry-Type"] == "directory"
        assert response["X-Svc-Path"] == tree
        assert response.headers.get_content_type() == "application/json"
    assert http.head(files(tree)).body == b""


def test_the_root_lists_too(http: Client, tree: str) -> None:
    for target in ("/files/", "/files", "/engine/"):
        response = http.get(target, limit=1000)
        assert response.status == 200, target
        assert response.json()["path"] == "/"
        assert tree.split("/")[1] in [item["name"] for item in response.json()["items"]]


def test_an_empty_directory_is_an_empty_list(http: Client, area: str) -> None:
    assert http.post("/files/mkdir", {"path": f"{area}/nothing"}).status == 201
    value = http.listing(f"{area}/nothing")
    assert (value["items"], value["total"], value["has_more"]) == ([], 0, False)


def test_a_missing_directory_is_404(http: Client, area: str) -> None:
    assert_error(http.get(files(f"{area}/no/dir")), 404, "NOT_FOUND")


class TestPages:
    @pytest.mark.parametrize("limit", [1, 2, 7, 53, 1000, None])
    def test_cursors_visit_everything_once_in_order(self, http: Client, area: str, limit: int | None) -> None:
        names = sorted(f"f{number:03}" for number in range(53))
        operations = [{"op": "put", "path": f"{area}/{name}", "content": name} for name in names]
        assert http.post("/files/batch", {"operations": operations}).status == 200
        assert [item["name"] for item in all_pages(http, area, limit)] == names

    def test_offsets_reach_any_place(self, http: Client, area: str) -> None:
        for number in range(12):
            http.store(f"{area}/{number:02}", b"")
        value = http.listing(area, limit=5, offset=5)
        assert [item["name"] for item in value["items"]] == ["05", "06", "07", "08", "09"]
        assert (value["total"], value["has_more"]) == (12, True)
        value = http.listing(area, limit=5, offset=10)
        assert [item["name"] for item in value["items"]] == ["10", "11"]
        assert value["has_more"] is False
        value = http.listing(area, limit=5, offset=12)
        assert (value["items"], value["has_more"], value["total"]) == ([], False, 12)
        assert http.listing(area, limit=5, offset=10**15)["items"] == []

    def test_a_cursor_goes_on_where_it_stood_while_files_come_and_go(self, http: Client, area: str) -> None:
        for name in "abcdefgh":
            http.store(f"{area}/{name}", b"")
        page = http.listing(area, limit=3)
        http.delete(files(f"{area}/c"))
        http.store(f"{area}/aa", b"")
        rest = http.listing(area, limit=100, after=page["next_cursor"])
        assert [item["name"] for item in rest["items"]] == ["d", "e", "f", "g", "h"]

    @pytest.mark.parametrize(
        "query",
        [
            {"limit": "x"},
            {"limit": "-1"},
            {"limit": "1.5"},
            {"offset": "-1"},
            {"offset": "x"},
            {"depth": "x"},
            {"depth": "-2"},
            {"after": "\x00garbage"},
            {"after": "!!"},
            {"limit": "9" * 5000},
            {"depth": "1e3"},
        ],
    )
    def test_bad_parameters_are_400_and_say_which(
        self, http: Client, tree: str, query: dict[str, str]
    ) -> None:
        value = assert_error(http.get(files(tree), **query), 400, "INVALID_INPUT")
        assert next(iter(query)) in value["error"] + str(value.get("field"))

    @pytest.mark.parametrize("depth", [0, 2, -1])
    def test_more_than_the_most_is_refused(self, http: Client, tree: str, depth: int) -> None:
        assert http.get(files(tree), limit=10_000, depth=depth).status == 200
        value = assert_error(http.get(files(tree), limit=10_001, depth=depth), 400, "INVALID_INPUT")
        assert (value["field"], value["limit"]) == ("limit", 10_000)


class TestDepth:
    def test_everything_below_is_files_only_in_path_order(self, http: Client, tree: str) -> None:
        items = all_pages(http, tree, 1000, depth=-1)
        paths = [item["path"] for item in items]
        expected = ["a.txt", "b.txt", "c.md", "sub/deep/er/leaf.md", *[f"sub/n{n}.txt" for n in range(5)]]
        assert [path for path in paths if path != f"{tree}/link"] == [f"{tree}/{name}" for name in expected]
        assert all(item["entry_type"] in (2, 8) for item in items)
        assert all(left.split("/") < right.split("/") for left, right in pairwise(paths))

    def test_a_depth_ends_the_descent(self, http: Client, tree: str) -> None:
        one = {item["path"] for item in all_pages(http, tree, 1000, depth=1) if item["entry_type"] == 2}
        expected = {f"{tree}/{name}" for name in ("a.txt", "b.txt", "c.md")}
        expected |= {f"{tree}/sub/n{number}.txt" for number in range(5)}
        assert one == expected
        three = {item["path"] for item in all_pages(http, tree, 1000, depth=3) if item["entry_type"] == 2}
        assert three == expected | {f"{tree}/sub/deep/er/leaf.md"}

    @pytest.mark.parametrize("limit", [1, 3, 100])
    def test_pages_of_a_deep_listing(self, http: Client, tree: str, limit: int) -> None:
        whole = [item["path"] for item in all_pages(http, tree, 1000, depth=-1)]
        assert [item["path"] for item in all_pages(http, tree, limit, depth=-1)] == whole

    def test_depth_zero_is_the_children(self, http: Client, tree: str) -> None:
        assert http.names(tree, depth=0) == ["a.txt", "b.txt", "c.md", "link", "sub"]


class TestGlob:
    @pytest.mark.parametrize(
        ("glob", "names"),
        [
            ("*.txt", {"a.txt", "b.txt"}),
            ("?.txt", {"a.txt", "b.txt"}),
            ("a*", {"a.txt"}),
            ("*", {"a.txt", "b.txt", "c.md", "link", "sub"}),
            ("nothing*", set()),
            ("A*", set()),
        ],
    )
    def test_against_the_names_of_the_children(
        self, http: Client, tree: str, glob: str, names: set[str]
    ) -> None:
        assert set(http.names(tree, glob=glob)) == names

    @pytest.mark.parametrize(
        ("glob", "paths"),
        [
            ("*.md", {"c.md", "sub/deep/er/leaf.md"}),
            ("sub/*.txt", {f"sub/n{number}.txt" for number in range(5)}),
            ("sub/n[13].txt", {"sub/n1.txt", "sub/n3.txt"}),
            ("sub/**", {*[f"sub/n{number}.txt" for number in range(5)], "sub/deep/er/leaf.md"}),
            ("**/leaf.md", {"sub/deep/er/leaf.md"}),
            ("{area}/sub/n?.txt", {f"sub/n{number}.txt" for number in range(5)}),
            ("{area}/**/*.md", {"c.md", "sub/deep/er/leaf.md"}),
        ],
    )
    def test_against_relative_and_full_paths_below(
        self, http: Client, tree: str, glob: str, paths: set[str]
    ) -> None:
        items = all_pages(http, tree, 3, depth=-1, glob=glob.format(area=tree))
        assert {item["path"] for item in items} == {f"{tree}/{path}" for path in paths}

    @pytest.mark.parametrize("glob", ["[", "**" * 2000, "*a" * 300, "{a,b", "\\", "[z-a]", "(", "!(", "\x00"])
    def test_strange_patterns_are_answered_quickly(self, http: Client, area: str, glob: str) -> None:
        http.store(f"{area}/" + "a" * 250, b"")
        assert http.get(files(area), glob=glob, depth=-1).status in (200, 400)


def test_a_large_directory_keeps_exact_totals(http: Client, area: str) -> None:
    names = [f"file-{number:05}" for number in range(3000)]
    for start in range(0, len(names), 1000):
        operations = [
            {"op": "put", "path": f"{area}/d/{name}", "content": name} for name in names[start : start + 1000]
        ]
        assert http.post("/files/batch", {"operations": operations}).status == 200
    (item,) = http.listing(area)["items"]
    assert (item["file_count"], item["total_size"]) == (3000, 3000 * 10)
    assert http.listing(f"{area}/d", limit=1)["total"] == 3000
    assert [item["name"] for item in all_pages(http, f"{area}/d", 777)] == names
    for depth in (0, -1):
        assert len(http.listing(f"{area}/d", depth=depth)["items"]) == 1000
        assert len(http.listing(f"{area}/d", depth=depth, limit=10_000)["items"]) == 3000
    page = http.listing(f"{area}/d", limit=2, offset=2998)
    assert [item["name"] for item in page["items"]] == names[-2:]


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def test_who_asks_for_html_gets_links(http: Client, area: str) -> None:
    for name in ("a.txt", "<script>b", "sub/c.txt"):
        http.store(f"{area}/html/{name}", b"x")
    path = files(f"{area}/html")
    answer = http.get(path, {"Accept": BROWSER})
    assert answer["Content-Type"].startswith("text/html")
    assert "Accept" in answer["Vary"]
    assert answer["Content-Security-Policy"].startswith("default-src 'none'")
    page = answer.body.decode()
    assert "<script" not in page
    links = re.findall(r'href="([^"]*)"', page)
    assert links == [f"{path.rpartition('/')[0]}/", f"{path}/%3Cscript%3Eb", f"{path}/a.txt", f"{path}/sub/"]
    assert http.get(links[1]).body == b"x"
    assert http.get(links[3], {"Accept": BROWSER}).status == 200
    again = {"Accept": BROWSER, "If-None-Match": answer["ETag"]}
    assert http.get(path, again).status == 304
    as_json = http.get(path)
    assert as_json.json()["path"].endswith("/html")
    assert as_json["ETag"] != answer["ETag"]
    assert http.get(f"{path}?depth=-1", {"Accept": BROWSER})["Content-Type"].startswith("application/json")


def test_pages_of_html_lead_on_at_the_same_version(http: Client, area: str) -> None:
    for number in range(5):
        version = http.store(f"{area}/pages/{number}", b"x")["version"]
    http.store(f"{area}/pages/later", b"x")
    url, seen = f"{files(area)}/pages?limit=2&version={version}", []
    while url:
        page = http.get(url, {"Accept": BROWSER}).body.decode()
        seen += [html.unescape(link) for link in re.findall(r'<td><a href="([^"]*)"', page)][1:]
        following = re.findall(r'rel="next" href="([^"]*)"', page)
        url = html.unescape(following[0]) if following else ""
    assert seen == [f"{files(f'{area}/pages/{number}')}?version={version}" for number in range(5)]
