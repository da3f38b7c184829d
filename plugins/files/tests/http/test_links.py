"""Symbolic links: made, read, followed, and never leading where nobody may go."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Http  # noqa: TID252


def link(http: Http, path: str, target: str, status: int = 201) -> None:
    assert http("PUT", f"/links{path}", json={"target": target}).status_code == status


def test_a_link_is_made_described_replaced_and_removed(http: Http) -> None:
    http.fill("/a", "/b")
    made = http("PUT", "/links/l", json={"target": "//a/."})
    assert (made.status_code, made.json["target"], made.headers["location"]) == (201, "/a", "/links/l")
    read = http.get("/links/l")
    assert (read.json["target"], read.json["resolved"], read.json["entry_type"]) == ("/a", "/a", 8)
    assert read.headers["x-svc-symlink-target"] == "/a"
    assert read.headers["x-svc-entry-type"] == "symlink"
    link(http, "/l", "/b", 200)
    gone = http.delete("/links/l")
    assert (gone.status_code, gone.json["entry_type"]) == (200, 8)
    assert http.get("/links/l").status_code == 404
    assert http.get("/files/b").status_code == 200


def test_reading_follows_and_says_so(http: Http) -> None:
    http.fill("/d/a")
    link(http, "/l", "/d/a")
    link(http, "/m", "/d")
    answer = http.get("/files/l")
    assert answer.content == b"/d/a"
    assert answer.headers["x-svc-path"] == "/d/a"
    assert answer.headers["x-svc-symlink-target"] == "/d/a"
    assert answer.headers["x-svc-entry-type"] == "file"
    assert http.get("/files/m/a").content == b"/d/a"
    assert http.items("/files/m") == ["/d/a"]


def test_nofollow_describes_the_link_itself(http: Http) -> None:
    link(http, "/l", "/nowhere")
    answer = http.get("/files/l", params={"nofollow": "true"})
    assert answer.status_code == 200
    assert (answer.json["entry_type"], answer.json["target"]) == (8, "/nowhere")
    assert answer.headers["x-svc-entry-type"] == "symlink"
    assert http("HEAD", "/files/l", params={"nofollow": "true"}).headers["x-svc-symlink-target"] == "/nowhere"


def test_a_dangling_link_is_404_to_readers_and_can_still_be_described(http: Http) -> None:
    link(http, "/l", "/nowhere")
    assert http.get("/files/l").status_code == 404
    assert http.get("/links/l").json["resolved"] is None


def test_chains_of_32_links_work_and_longer_ones_are_400(http: Http) -> None:
    http.fill("/end")
    link(http, "/l1", "/end")
    for number in range(2, 33):
        link(http, f"/l{number}", f"/l{number - 1}")
    assert http.get("/files/l32").content == b"/end"
    assert http("PUT", "/links/l33", json={"target": "/l32"}).status_code == 400
    with http.database.transaction() as transaction:
        transaction.link(("l33",), "/l32")
    assert http.get("/files/l33").status_code == 400


def test_a_circle_is_400_when_it_is_made_and_when_it_is_met(http: Http) -> None:
    assert http("PUT", "/links/self", json={"target": "/self"}).status_code == 400
    assert http("PUT", "/links/self", json={"target": "/self/below"}).status_code == 400
    link(http, "/a", "/b")
    assert http("PUT", "/links/b", json={"target": "/a"}).status_code == 400
    with http.database.transaction() as transaction:
        transaction.link(("b",), "/a")
    for path in ("/files/a", "/files/b/c"):
        answer = http.get(path)
        assert (answer.status_code, answer.json["code"]) == (400, "INVALID_INPUT")
    assert http.put("/files/a/x", b"").status_code == 400
    assert http.get("/links/a").json["resolved"] is None


def test_writing_goes_through_links_and_deleting_does_not(http: Http) -> None:
    http.fill("/d/a")
    link(http, "/l", "/d/a")
    link(http, "/m", "/d")
    assert http.put("/files/l", b"new").json["path"] == "/d/a"
    assert http.put("/files/m/b", b"new").json["path"] == "/d/b"
    assert http.get("/links/l").status_code == 200
    assert http.delete("/files/l").json["entry_type"] == 8
    assert http.get("/files/d/a").content == b"new"
    assert http.delete("/files/m/b").json["path"] == "/d/b"


def test_writing_through_a_dangling_link_makes_what_it_names(http: Http) -> None:
    link(http, "/l", "/later/file")
    assert http.put("/files/l", b"x").json["path"] == "/later/file"
    assert http.get("/files/l").content == b"x"


def test_nofollow_replaces_the_link_with_a_file(http: Http) -> None:
    http.fill("/a")
    link(http, "/l", "/a")
    assert http.put("/files/l", b"file", params={"nofollow": "true"}).status_code == 200
    assert http.get("/links/l").status_code == 404
    assert http.get("/files/a").content == b"/a"


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("relative", 400),
        ("", 400),
        ("/../x", 400),
        ("/a\x00", 400),
        ("/.svc-system/users", 404),
        ("/.system", 404),
    ],
)
def test_a_bad_target_is_refused(http: Http, target: str, status: int) -> None:
    assert http("PUT", "/links/l", json={"target": target}).status_code == status
    assert http.get("/links/l").status_code == 404


def test_links_are_no_files_and_files_no_links(http: Http) -> None:
    http.fill("/a", "/d/e")
    for path in ("/a", "/d", "/none"):
        assert http.get(f"/links{path}").status_code == 404
        assert http.delete(f"/links{path}").status_code == 404
    assert http("PUT", "/links/a", json={"target": "/d"}).status_code == 409
    assert http("PUT", "/links/d", json={"target": "/a"}).status_code == 409
    assert http("PUT", "/links/a/b", json={"target": "/d"}).status_code == 409


def test_links_take_conditions(http: Http) -> None:
    http.fill("/a", "/b")
    link(http, "/l", "/a")
    etag = http.get("/links/l").headers["etag"]
    body = {"target": "/b"}
    assert http("PUT", "/links/l", json=body, headers={"If-None-Match": "*"}).status_code == 412
    assert http.get("/links/l", headers={"If-None-Match": etag}).status_code == 304
    assert http("PUT", "/links/l", json=body, headers={"If-Match": etag}).status_code == 200
    assert http.delete("/links/l", headers={"If-Match": etag}).status_code == 412


def test_the_root_is_no_link(http: Http) -> None:
    assert http.get("/links").status_code == 404
    assert http("PUT", "/links/", json={"target": "/a"}).status_code in (400, 409)


@pytest.mark.parametrize("body", ["{}", "[]", '{"target": 1}', "{", '{"target": "/a", "more": 1}'])
def test_a_malformed_body_is_400(http: Http, body: str) -> None:
    answer = http("PUT", "/links/l", body=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400


def linking(path: str, target: str) -> dict[str, str]:
    return {"op": "link", "path": path, "target": target}


def test_a_batch_makes_no_circle_either(http: Http) -> None:
    http.fill("/file")
    assert http("PUT", "/links/there", json={"target": "/here"}).status_code == 201

    def answer(*operations: dict[str, str]) -> Any:
        return http.post("/files/batch", {"operations": list(operations)})

    for operations in (
        [linking("/here", "/there")],
        [linking("/a", "/b"), linking("/b", "/a")],
        [linking("/a", "/b/x"), linking("/b", "/c"), linking("/c", "/a/y")],
        [linking("/self", "/self/below")],
    ):
        refused = answer(*operations)
        assert (refused.status_code, refused.json["code"]) == (400, "INVALID_INPUT"), operations
        assert refused.json["operation"] == len(operations) - 1
    chain = [linking(f"/l{number}", f"/l{number + 1}") for number in reversed(range(40))]
    assert answer(*chain).json["operation"] == 32
    assert answer(*chain[:32]).status_code == 200
    # What the batch itself has taken away or led elsewhere leads nowhere back.
    assert answer({"op": "delete", "path": "/there"}, linking("/here", "/there")).status_code == 200
    assert answer(linking("/here", "/file"), linking("/there", "/here")).status_code == 200
    assert http.get("/files/there").text == "/file"
