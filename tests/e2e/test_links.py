"""Symbolic links: made, followed, described, and what happens when they lead nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc_blackbox.client import Client, assert_error, files, links


def make(http: Client, path: str, target: str) -> int:
    response = http.send_json("PUT", links(path), {"target": target})
    assert response.status in (200, 201), response.body
    return response.status


def test_made_read_and_removed(http: Client, area: str) -> None:
    http.store(f"{area}/file", b"content")
    assert make(http, f"{area}/l", f"{area}/file") == 201
    assert make(http, f"{area}/l", f"{area}/file") == 200
    response = http.get(links(f"{area}/l"))
    assert response.status == 200
    assert response.json()["target"] == f"{area}/file"
    assert http.delete(links(f"{area}/l")).status == 200
    assert_error(http.get(links(f"{area}/l")), 404, "NOT_FOUND")
    assert http.read(f"{area}/file") == b"content"


def test_reading_through_a_link_gives_the_file(http: Client, area: str) -> None:
    http.store(f"{area}/file", b"content", {"Content-Type": "text/x-mine"})
    make(http, f"{area}/l", f"{area}/file")
    response = http.get(files(f"{area}/l"))
    assert response.body == b"content"
    assert response["Content-Type"] == "text/x-mine"
    assert response["ETag"] == http.head(files(f"{area}/file"))["ETag"]


def test_nofollow_describes_the_link_itself(http: Client, area: str) -> None:
    make(http, f"{area}/l", f"{area}/file")
    for response in (
        http.get(files(f"{area}/l"), nofollow="true"),
        http.head(files(f"{area}/l"), nofollow="true"),
    ):
        assert response.status == 200
        assert response["X-Svc-Entry-Type"] == "symlink"
        assert response["X-Svc-Symlink-Target"] == f"{area}/file"


def test_a_link_to_a_directory_is_a_way_in(http: Client, area: str) -> None:
    http.store(f"{area}/dir/x", b"x")
    make(http, f"{area}/l", f"{area}/dir")
    assert http.read(f"{area}/l/x") == b"x"
    assert http.names(f"{area}/l") == ["x"]
    http.store(f"{area}/l/y", b"y")
    assert http.read(f"{area}/dir/y") == b"y"


def test_retargeting_changes_what_is_read(http: Client, area: str) -> None:
    http.store(f"{area}/1", b"one")
    http.store(f"{area}/2", b"two")
    make(http, f"{area}/l", f"{area}/1")
    make(http, f"{area}/l", f"{area}/2")
    assert http.read(f"{area}/l") == b"two"


def test_a_dangling_link_is_404(http: Client, area: str) -> None:
    make(http, f"{area}/l", f"{area}/nothing")
    assert_error(http.get(files(f"{area}/l")), 404, "NOT_FOUND")
    assert http.head(files(f"{area}/l")).status == 404
    assert http.get(links(f"{area}/l")).status == 200


def test_a_chain_of_32_is_followed_and_a_longer_one_is_400(http: Client, area: str) -> None:
    http.store(f"{area}/end", b"reached")
    make(http, f"{area}/l1", f"{area}/end")
    for number in range(2, 33):
        make(http, f"{area}/l{number}", f"{area}/l{number - 1}")
    assert http.read(f"{area}/l32") == b"reached"
    response = http.send_json("PUT", links(f"{area}/l33"), {"target": f"{area}/l32"})
    if response.status == 201:
        response = http.get(files(f"{area}/l33"))
    assert_error(response, 400, "INVALID_INPUT")


def test_a_chain_that_grew_too_long_from_its_other_end_is_400_to_read(http: Client, area: str) -> None:
    for number in range(33, 1, -1):
        make(http, f"{area}/l{number}", f"{area}/l{number - 1}")
    http.store(f"{area}/l1", b"reached")
    assert http.read(f"{area}/l33") == b"reached"
    make(http, f"{area}/l34", f"{area}/l1")
    http.delete(files(f"{area}/l1"))
    http.store(f"{area}/end", b"reached")
    make(http, f"{area}/l1", f"{area}/end")
    assert http.read(f"{area}/l32") == b"reached"
    assert_error(http.get(files(f"{area}/l33")), 400, "INVALID_INPUT")


def test_a_cycle_is_400(http: Client, area: str) -> None:
    make(http, f"{area}/a", f"{area}/b")
    response = http.send_json("PUT", links(f"{area}/b"), {"target": f"{area}/a"})
    assert response.status in (201, 400)
    if response.status == 201:
        for name in ("a", "b", "a/below"):
            assert_error(http.get(files(f"{area}/{name}")), 400, "INVALID_INPUT")
            assert http.head(files(f"{area}/{name}")).status == 400
        assert http.names(area) == ["a", "b"]


def test_a_link_to_itself_is_400(http: Client, area: str) -> None:
    response = http.send_json("PUT", links(f"{area}/self"), {"target": f"{area}/self"})
    if response.status == 201:
        response = http.get(files(f"{area}/self"))
    assert_error(response, 400, "INVALID_INPUT")


def test_a_link_does_not_replace_a_directory(http: Client, area: str) -> None:
    http.store(f"{area}/d/x", b"")
    assert_error(http.send_json("PUT", links(f"{area}/d"), {"target": f"{area}/elsewhere"}), 409)
    assert http.names(f"{area}/d") == ["x"]


def test_a_file_is_no_link(http: Client, area: str) -> None:
    http.store(f"{area}/file", b"kept")
    response = http.get(links(f"{area}/file"))
    assert 400 <= response.status < 500
    response = http.delete(links(f"{area}/file"))
    assert 400 <= response.status < 500
    assert http.read(f"{area}/file") == b"kept"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"target": 1},
        {"target": None},
        {"target": ""},
        [],
        "x",
        {"target": "/a/../b"},
        {"target": "/a\x00"},
        {"target": "/" + "x" * 300},
        {"target": "/\ud800"},
    ],
)
def test_bad_targets_are_400(http: Client, area: str, body: Any) -> None:
    response = http.send_json("PUT", links(f"{area}/l"), body)
    assert_error(response, 400)
    assert_error(http.get(links(f"{area}/l")), 404)


def test_a_deep_listing_does_not_run_around_in_circles(http: Client, area: str) -> None:
    http.store(f"{area}/d/file", b"")
    make(http, f"{area}/d/up", area)
    items = http.listing(area, depth=-1, limit=1000)["items"]
    assert [item["path"] for item in items if item["entry_type"] == 2] == [f"{area}/d/file"]


def test_links_are_versioned_like_files(http: Client, area: str) -> None:
    http.store(f"{area}/1", b"one")
    http.store(f"{area}/2", b"two")
    response = http.send_json("PUT", links(f"{area}/l"), {"target": f"{area}/1"})
    version = json.loads(response.body).get("version") or http.head(files(area))["X-Svc-Version"]
    make(http, f"{area}/l", f"{area}/2")
    assert http.read(f"{area}/l", version=version) == b"one"
