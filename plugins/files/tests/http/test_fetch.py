"""``/files/fetch``: many files or parts of them in one answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Http  # noqa: TID252


def one(http: Http, **item: Any) -> dict[str, Any]:
    answer = http.post("/files/fetch", {"items": [item]})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json["items"][0]
    return result


def test_whole_files_come_in_the_order_asked_with_errors_in_their_place(http: Http) -> None:
    http.put("/files/a.txt", "grüße")
    http.put("/files/b.bin", b"\xff\x00")
    http.fill("/d/e")
    answer = http.post(
        "/files/fetch", {"paths": ["/b.bin", "/none", "/a.txt", "/d", "/.svc-system/x", "/a.txt"]}
    )
    items = answer.json["items"]
    assert [item["path"] for item in items] == ["/b.bin", "/none", "/a.txt", "/d", "/.svc-system/x", "/a.txt"]
    assert (items[0]["encoding"], items[0]["content"]) == ("base64", "/wA=")
    assert items[1]["code"] == items[4]["code"] == "NOT_FOUND"
    assert items[1]["error"] == items[4]["error"]
    assert (items[2]["encoding"], items[2]["content"], items[2]["size"]) == ("utf-8", "grüße", 7)
    assert items[3]["code"] == "INVALID_INPUT"
    assert answer.json["version"] == http.get("/files").headers["x-svc-version"]


@pytest.mark.parametrize(
    ("lines", "content", "given"),
    [
        ([1, 1], "one\n", [1, 1]),
        ([2, 3], "two\nthree\n", [2, 3]),
        ([4, None], "four", [4, 4]),
        ([1, None], "one\ntwo\nthree\nfour", [1, 4]),
        ([3, 100], "three\nfour", [3, 4]),
        ([9, 10], "", [9, 8]),
    ],
)
def test_lines(http: Http, lines: list[int | None], content: str, given: list[int]) -> None:
    http.put("/files/a", "one\ntwo\nthree\nfour")
    item = one(http, path="/a", lines=lines)
    assert (item["content"], item["lines"]) == (content, given)


def test_lines_across_chunks(http: Http) -> None:
    rows = [f"{number:>90}\n" for number in range(10_000)]
    http.put("/files/a", "".join(rows))
    for first, last in ((1, 3), (2890, 2960), (9_998, None), (5_000, 9_000)):
        item = one(http, path="/a", lines=[first, last])
        assert item["content"] == "".join(rows[first - 1 : last])


def test_bytes_and_characters(http: Http) -> None:
    http.put("/files/a", "grüße!")
    assert one(http, path="/a", bytes=[0, 2])["content"] == "gr"
    assert one(http, path="/a", bytes=[0, 3])["encoding"] == "base64"
    assert one(http, path="/a", bytes=[6, 1000]) | {"bytes": [6, 8], "content": "e!"} == one(
        http, path="/a", bytes=[6, None]
    )
    assert one(http, path="/a", bytes=[100, None])["content"] == ""
    assert one(http, path="/a", chars=[2, 4])["content"] == "üß"
    assert one(http, path="/a", chars=[4, None])["content"] == "e!"
    http.put("/files/b", b"ab\xff")
    assert one(http, path="/b", chars=[0, None])["code"] == "INVALID_INPUT"


def test_a_json_pointer_names_a_value(http: Http) -> None:
    http.put("/files/a.json", b'{"a/b": [1, {"~": null}], "": 5}')
    assert one(http, path="/a.json", json_pointer="/a~1b/1/~0")["value"] is None
    assert one(http, path="/a.json", json_pointer="/a~1b/0")["value"] == 1
    assert one(http, path="/a.json", json_pointer="/")["value"] == 5
    assert one(http, path="/a.json", json_pointer="")["value"]["a/b"][0] == 1
    for pointer, code in (
        ("/x", "NOT_FOUND"),
        ("/a~1b/9", "NOT_FOUND"),
        ("/a~1b/01", "NOT_FOUND"),
        ("x", "INVALID_INPUT"),
        ("/~2", "INVALID_INPUT"),
    ):
        assert one(http, path="/a.json", json_pointer=pointer)["code"] == code
    http.put("/files/text", b"no json")
    assert one(http, path="/text", json_pointer="")["code"] == "INVALID_INPUT"


def test_a_stale_hash_refuses_all_with_409(http: Http) -> None:
    fresh = http.put("/files/a", b"1").json["content_hash"]
    http.fill("/b")
    items = [{"path": "/a", "if_content_hash": fresh}, {"path": "/b", "if_content_hash": fresh}]
    answer = http.post("/files/fetch", {"items": items})
    assert (answer.status_code, answer.json["code"]) == (409, "CONFLICT")
    assert [stale["path"] for stale in answer.json["stale"]] == ["/b"]
    assert http.post("/files/fetch", {"items": items[:1]}).status_code == 200


@pytest.mark.parametrize(
    "item",
    [
        {"path": "/a", "lines": [0, 1]},
        {"path": "/a", "lines": [2, 1]},
        {"path": "/a", "bytes": [-1, 1]},
        {"path": "/a", "chars": [1]},
        {"path": "/a", "lines": [1, 2], "bytes": [0, 1]},
        {"path": "/a", "bytes": "0-1"},
        {"path": "/../a"},
        {"lines": [1, 2]},
        {"path": "/a", "unknown": 1},
    ],
)
def test_a_malformed_item_is_400(http: Http, item: dict[str, Any]) -> None:
    http.fill("/a")
    assert http.post("/files/fetch", {"items": [item]}).status_code == 400


def test_nothing_asked_for_is_400(http: Http) -> None:
    assert http.post("/files/fetch", {}).status_code == 400


def test_too_much_is_413(http: Http, set_limits: Callable[..., None]) -> None:
    http.put("/files/a", b"x" * 600 + b"\nend")
    set_limits(fetch_paths=3, fetch_bytes=1000, fetch_scan_bytes=1000)
    assert http.post("/files/fetch", {"paths": ["/a"] * 4}).status_code == 413
    assert http.post("/files/fetch", {"paths": ["/a"] * 2}).status_code == 413
    assert http.post("/files/fetch", {"paths": ["/a"]}).status_code == 200
    lines = [{"path": "/a", "lines": [2, 2]}]
    assert http.post("/files/fetch", {"items": lines}).status_code == 200
    assert http.post("/files/fetch", {"items": lines * 2}).status_code == 413


def test_a_fetch_reads_one_version(http: Http) -> None:
    version = http.put("/files/a", b"1").json["version"]
    http.put("/files/a", b"2")
    answer = http.post("/files/fetch", {"paths": ["/a"]}, params={"version": version})
    assert answer.json["items"][0]["content"] == "1"
