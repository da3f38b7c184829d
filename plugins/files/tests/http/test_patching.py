"""PATCH: renames and merge patches."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from falcon.testing import Result

from svc.plugin import Limits

from .conftest import Http  # noqa: TID252

MERGE = {"Content-Type": "application/merge-patch+json"}


def merge(http: Http, path: str, patch: Any, **headers: str) -> Result:
    body = patch if isinstance(patch, (str, bytes)) else json.dumps(patch)
    return http(
        "PATCH", path, body=body, headers={**MERGE, **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


class TestRename:
    def test_a_file_moves_with_its_content_and_times(self, http: Http) -> None:
        before = http.put("/files/a", b"x").json
        answer = http("PATCH", "/files/a", json={"to": "/d/b"})
        assert answer.status_code == 200
        assert (answer.json["path"], answer.json["from"]) == ("/d/b", "/a")
        assert answer.json["created_at"] == before["created_at"]
        assert http.get("/files/d/b").content == b"x"
        assert http.get("/files/a").status_code == 404
        assert http.get("/files/deleted").json["items"] == []

    def test_a_directory_moves_with_everything_below(self, http: Http) -> None:
        http.fill("/a/b/c", "/a/d")
        assert http("PATCH", "/files/a", json={"to": "/z"}).status_code == 200
        assert http.items("/files", params={"depth": "-1"}) == ["/z/b/c", "/z/d"]

    def test_a_link_moves_and_what_it_names_stays(self, http: Http) -> None:
        http.fill("/a")
        http("PUT", "/links/l", json={"target": "/a"})
        assert http("PATCH", "/files/l", json={"to": "/m"}).status_code == 200
        assert http.get("/links/m").json["target"] == "/a"
        assert http.get("/files/a").status_code == 200

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"to": "/b"}, 409),
            ({"to": "/d/e/inside"}, 409),
            ({"to": "/d"}, 409),
            ({"to": "/../x"}, 400),
            ({"to": "/b", "unknown": 1}, 400),
            ({"to": 5}, 400),
            ({}, 400),
            ({"to": "/.svc-system/x"}, 404),
            ({"to": "/"}, 409),
        ],
    )
    def test_what_cannot_be_renamed(self, http: Http, body: dict[str, Any], status: int) -> None:
        http.fill("/b", "/d/e/f")
        assert http("PATCH", "/files/d/e", json=body).status_code == status
        assert http("PATCH", "/files/d", json={"to": "/d/e/x"}).status_code == 409
        assert http.items("/files", params={"depth": "-1"}) == ["/b", "/d/e/f"]

    def test_a_missing_source_is_404_and_overwriting_must_be_asked_for(self, http: Http) -> None:
        assert http("PATCH", "/files/none", json={"to": "/b"}).status_code == 404
        http.fill("/a", "/b")
        assert http("PATCH", "/files/a", json={"to": "/b", "overwrite": True}).status_code == 200
        assert http.get("/files/b").content == b"/a"

    def test_conditions_look_at_the_source(self, http: Http) -> None:
        etag = http.put("/files/a", b"x").headers["etag"]
        assert http("PATCH", "/files/a", json={"to": "/b"}, headers={"If-Match": '"no"'}).status_code == 412
        assert http("PATCH", "/files/a", json={"to": "/b"}, headers={"If-Match": etag}).status_code == 200

    def test_another_media_type_is_415_and_says_what_is_taken(self, http: Http) -> None:
        http.fill("/a")
        answer = http("PATCH", "/files/a", body="x", headers={"Content-Type": "text/plain"})
        assert (answer.status_code, answer.json["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
        assert "application/merge-patch+json" in answer.json["error"]
        assert """curl -X PATCH --json '{"to": "..."}' http://""" in answer.json["error"]
        assert "application/merge-patch+json" in answer.headers["accept-patch"]

    def test_malformed_json_is_400(self, http: Http) -> None:
        http.fill("/a")
        for body in ("{", "[]", '"x"', "\xff", "", "{" * 5000):
            answer = http("PATCH", "/files/a", body=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 400


class TestMerge:
    # The examples of RFC 7396, appendix A.
    @pytest.mark.parametrize(
        ("target", "patch", "result"),
        [
            ({"a": "b"}, {"a": "c"}, {"a": "c"}),
            ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
            ({"a": "b"}, {"a": None}, {}),
            ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
            ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
            ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
            ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
            ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
            (["a", "b"], ["c", "d"], ["c", "d"]),
            ({"a": "b"}, ["c"], ["c"]),
            ({"a": "foo"}, None, None),
            ({"a": "foo"}, b'"bar"', "bar"),
            ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
            ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
            ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ],
    )
    def test_the_examples_of_the_rfc(self, http: Http, target: Any, patch: Any, result: Any) -> None:
        http.put("/files/a.json", json.dumps(target))
        assert merge(http, "/files/a.json", patch).status_code == 200
        assert json.loads(http.get("/files/a.json").content) == result

    def test_a_missing_document_is_made(self, http: Http) -> None:
        answer = merge(http, "/files/d/a", {"a": 1, "b": None})
        assert (answer.status_code, answer.json["content_type"]) == (201, "application/json")
        assert http.get("/files/d/a").content == b'{"a":1}'

    def test_the_content_type_and_big_numbers_stay(self, http: Http) -> None:
        http.put(
            "/files/a",
            b'{"n": 123456789012345678901234567890}',
            headers={"Content-Type": "application/x+json"},
        )
        answer = merge(http, "/files/a", {"m": 1})
        assert answer.json["content_type"] == "application/x+json"
        assert http.get("/files/a").content == b'{"n":123456789012345678901234567890,"m":1}'

    def test_it_goes_through_a_link(self, http: Http) -> None:
        http.put("/files/a.json", b"{}")
        http("PUT", "/links/l", json={"target": "/a.json"})
        assert merge(http, "/files/l", {"x": 1}).json["path"] == "/a.json"
        assert http.get("/links/l").status_code == 200

    @pytest.mark.parametrize(
        "patch",
        [
            "{",
            "",
            "NaN",
            "1e999",
            '{"a":' * 600 + "1" + "}" * 600,
            "[" * 100000,
            b"\xff",
            "9" * 5000,
            '"\\ud800"',
        ],
    )
    def test_a_patch_that_is_no_json_is_400(self, http: Http, patch: str | bytes) -> None:
        http.put("/files/a", b"{}")
        assert merge(http, "/files/a", patch).status_code == 400
        assert http.get("/files/a").content == b"{}"

    def test_a_stored_file_that_is_no_json_is_409(self, http: Http) -> None:
        http.put("/files/a", b"text")
        http.fill("/d/e")
        assert merge(http, "/files/a", {}).status_code == 409
        assert merge(http, "/files/d", {}).status_code == 409

    @pytest.mark.parametrize("server_limits", [Limits(json_body=100)])
    def test_too_large_is_413(self, http: Http) -> None:
        http.put("/files/a", json.dumps({"a": "x" * 90}))
        assert merge(http, "/files/a", {"a": "y" * 101}).status_code == 413
        assert merge(http, "/files/a", {"b": "y" * 50}).status_code == 413
        http.put("/files/big", b" " * 101 + b"{}")
        assert merge(http, "/files/big", {}).status_code == 413

    def test_conditions_hold(self, http: Http) -> None:
        etag = http.put("/files/a", b"{}").headers["etag"]
        assert merge(http, "/files/a", {"x": 1}, If_Match=etag).status_code == 200
        assert merge(http, "/files/a", {"x": 2}, If_Match=etag).status_code == 412
        assert merge(http, "/files/a", {"x": 2}, If_None_Match="*").status_code == 412
        assert json.loads(http.get("/files/a").content) == {"x": 1}

    def test_merges_at_the_same_time_lose_nothing(self, http: Http) -> None:
        http.put("/files/a", b"{}")
        statuses: list[int] = []

        def work(number: int) -> None:
            statuses.extend(merge(http, "/files/a", {f"{number}-{step}": 1}).status_code for step in range(5))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) == {200}
        assert len(json.loads(http.get("/files/a").content)) == 30
