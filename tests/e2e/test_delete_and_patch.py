"""DELETE and PATCH: what goes, what moves, what is merged, and what is refused."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from svc_blackbox.client import Client, assert_error, files, links


class TestDelete:
    def test_a_file(self, http: Client, area: str) -> None:
        stored = http.store(f"{area}/a.txt", b"a")
        response = http.delete(files(f"{area}/a.txt"))
        assert response.status == 200
        value = response.json()
        assert value["deleted"] is True
        assert value["path"] == f"{area}/a.txt"
        assert value["entry_type"] == 2
        assert value["version"] != stored["version"]
        assert_error(http.get(files(f"{area}/a.txt")), 404, "NOT_FOUND")

    def test_what_is_not_there_is_404(self, http: Client, area: str) -> None:
        assert_error(http.delete(files(f"{area}/nothing")), 404, "NOT_FOUND")
        assert_error(http.delete(files(f"{area}/no/such/thing")), 404, "NOT_FOUND")

    def test_twice_is_404(self, http: Client, area: str) -> None:
        http.store(f"{area}/a", b"")
        assert http.delete(files(f"{area}/a")).status == 200
        assert_error(http.delete(files(f"{area}/a")), 404, "NOT_FOUND")

    def test_an_empty_directory(self, http: Client, area: str) -> None:
        http.post("/files/mkdir", {"path": f"{area}/empty"})
        response = http.delete(files(f"{area}/empty"))
        assert response.status == 200
        assert response.json()["entry_type"] == 3
        assert_error(http.get(files(f"{area}/empty")), 404)

    def test_a_full_directory_only_when_told_so(self, http: Client, area: str) -> None:
        http.store(f"{area}/d/one", b"1")
        http.store(f"{area}/d/sub/two", b"2")
        assert_error(http.delete(files(f"{area}/d")), 409)
        assert_error(http.delete(files(f"{area}/d"), recursive="false"), 409)
        assert http.read(f"{area}/d/sub/two") == b"2"
        assert http.delete(files(f"{area}/d"), recursive="true").status == 200
        assert_error(http.get(files(f"{area}/d/sub/two")), 404)
        assert_error(http.get(files(f"{area}/d")), 404)

    def test_a_link_goes_and_its_target_stays(self, http: Client, area: str) -> None:
        http.store(f"{area}/target", b"kept")
        assert http.send_json("PUT", links(f"{area}/l"), {"target": f"{area}/target"}).status == 201
        response = http.delete(files(f"{area}/l"))
        assert response.status == 200
        assert response.json()["entry_type"] == 8
        assert http.read(f"{area}/target") == b"kept"
        assert http.names(area) == ["target"]

    def test_the_root_stays(self, http: Client, area: str) -> None:
        http.store(f"{area}/x", b"x")
        response = http.delete("/files/", recursive="bogus")
        assert 400 <= response.status < 500
        response = http.delete("/files/")
        assert 400 <= response.status < 500
        assert http.read(f"{area}/x") == b"x"


class TestRename:
    def test_a_file(self, http: Client, area: str) -> None:
        stored = http.store(f"{area}/old.txt", b"content", {"Content-Type": "text/x-mine"})
        response = http.send_json("PATCH", files(f"{area}/old.txt"), {"to": f"{area}/new/name.txt"})
        assert response.status == 200
        assert_error(http.get(files(f"{area}/old.txt")), 404)
        moved = http.get(files(f"{area}/new/name.txt"))
        assert moved.body == b"content"
        assert moved["Content-Type"] == "text/x-mine"
        assert moved["X-Svc-Created-At"] == str(stored["created_at"])

    def test_a_directory_with_everything_in_it(self, http: Client, area: str) -> None:
        for name in ("a", "b/c", "b/d/e"):
            http.store(f"{area}/from/{name}", name.encode())
        assert http.send_json("PATCH", files(f"{area}/from"), {"to": f"{area}/to"}).status == 200
        assert http.names(area) == ["to"]
        for name in ("a", "b/c", "b/d/e"):
            assert http.read(f"{area}/to/{name}") == name.encode()

    def test_a_link_moves_as_a_link(self, http: Client, area: str) -> None:
        http.store(f"{area}/target", b"t")
        http.send_json("PUT", links(f"{area}/l"), {"target": f"{area}/target"})
        assert http.send_json("PATCH", files(f"{area}/l"), {"to": f"{area}/m"}).status == 200
        items = {item["name"]: item for item in http.listing(area)["items"]}
        assert set(items) == {"m", "target"}
        assert items["m"]["entry_type"] == 8
        assert items["m"]["target"] == f"{area}/target"

    def test_what_is_not_there_is_404(self, http: Client, area: str) -> None:
        assert_error(http.send_json("PATCH", files(f"{area}/nothing"), {"to": f"{area}/x"}), 404, "NOT_FOUND")

    def test_a_taken_name_is_409_and_nothing_changes(self, http: Client, area: str) -> None:
        http.store(f"{area}/a", b"a")
        http.store(f"{area}/b", b"b")
        http.store(f"{area}/d/x", b"x")
        assert_error(http.send_json("PATCH", files(f"{area}/a"), {"to": f"{area}/b"}), 409)
        assert_error(http.send_json("PATCH", files(f"{area}/a"), {"to": f"{area}/d"}), 409)
        assert_error(http.send_json("PATCH", files(f"{area}/d"), {"to": f"{area}/b"}), 409)
        assert_error(http.send_json("PATCH", files(f"{area}/a"), {"to": f"{area}/b/below"}), 409)
        assert [http.read(f"{area}/{name}") for name in ("a", "b", "d/x")] == [b"a", b"b", b"x"]

    def test_a_directory_does_not_go_into_itself(self, http: Client, area: str) -> None:
        http.store(f"{area}/d/x", b"x")
        response = http.send_json("PATCH", files(f"{area}/d"), {"to": f"{area}/d/e/f"})
        assert response.status in (400, 409)
        assert http.read(f"{area}/d/x") == b"x"

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({}, "INVALID_INPUT"),
            ({"to": 5}, "INVALID_INPUT"),
            ({"to": None}, "INVALID_INPUT"),
            ([], "INVALID_INPUT"),
            ("text", "INVALID_INPUT"),
            ({"to": "/a/../b"}, "INVALID_PATH"),
            ({"to": "/a\x00b"}, "INVALID_PATH"),
            ({"to": "/" + "x" * 256}, "INVALID_PATH"),
        ],
    )
    def test_a_bad_body_is_400(self, http: Client, area: str, body: Any, code: str) -> None:
        http.store(f"{area}/a", b"a")
        assert_error(http.send_json("PATCH", files(f"{area}/a"), body), 400, code)
        assert http.read(f"{area}/a") == b"a"

    def test_the_root_cannot_be_renamed_nor_replaced(self, http: Client, area: str) -> None:
        http.store(f"{area}/a", b"a")
        for target, to in (("/files/", f"{area}/root"), (files(f"{area}/a"), "/")):
            response = http.send_json("PATCH", target, {"to": to})
            assert 400 <= response.status < 500
            assert_error(response, response.status)
        assert http.read(f"{area}/a") == b"a"

    @pytest.mark.parametrize("media", ["text/plain", "application/xml", "application/json-patch+json", "x"])
    def test_another_media_type_is_415(self, http: Client, area: str, media: str) -> None:
        http.store(f"{area}/a", b"a")
        response = http.request("PATCH", files(f"{area}/a"), b'{"to": "/b"}', {"Content-Type": media})
        assert_error(response, 415, "UNSUPPORTED_MEDIA_TYPE")

    def test_what_is_not_json_is_400(self, http: Client, area: str) -> None:
        http.store(f"{area}/a", b"a")
        for body in (b"", b"{", b"\xff\xfe", b'{"to": "/x"', b"{'to': 1}", b"[" * 100_000):
            response = http.request("PATCH", files(f"{area}/a"), body, {"Content-Type": "application/json"})
            assert_error(response, 400, "INVALID_INPUT")


RFC_7396 = [
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
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
"""The test cases of RFC 7396, appendix A: document, patch, result."""


class TestMergePatch:
    MEDIA: ClassVar = {"Content-Type": "application/merge-patch+json"}

    @pytest.mark.parametrize(("document", "patch", "expected"), RFC_7396)
    def test_the_cases_of_the_standard(
        self, http: Client, area: str, document: Any, patch: Any, expected: Any
    ) -> None:
        http.store(f"{area}/d.json", json.dumps(document).encode())
        assert http.send_json("PATCH", files(f"{area}/d.json"), patch, self.MEDIA).status == 200
        assert json.loads(http.read(f"{area}/d.json")) == expected

    def test_a_missing_document_is_made(self, http: Client, area: str) -> None:
        response = http.send_json("PATCH", files(f"{area}/new.json"), {"a": 1, "b": None}, self.MEDIA)
        assert response.status == 201
        read = http.get(files(f"{area}/new.json"))
        assert json.loads(read.body) == {"a": 1}
        assert read["Content-Type"] == "application/json"

    def test_large_numbers_and_text_survive(self, http: Client, area: str) -> None:
        document = {"n": 12345678901234567890, "f": 0.1, "t": "häß 🦆 \u0000"}
        http.store(f"{area}/d.json", json.dumps(document).encode())
        assert http.send_json("PATCH", files(f"{area}/d.json"), {"x": 1}, self.MEDIA).status == 200
        assert json.loads(http.read(f"{area}/d.json")) == {**document, "x": 1}

    def test_a_document_that_is_not_json_is_refused(self, http: Client, area: str) -> None:
        http.store(f"{area}/d.txt", b"\xffnot json")
        response = http.send_json("PATCH", files(f"{area}/d.txt"), {"a": 1}, self.MEDIA)
        assert response.status in (400, 409, 415)
        assert http.read(f"{area}/d.txt") == b"\xffnot json"

    def test_a_patch_that_is_not_json_is_400(self, http: Client, area: str) -> None:
        http.store(f"{area}/d.json", b"{}")
        for body in (b"", b"{", b"nope", b"NaN", b"\xff", b"[" * 200_000, b'{"a":' * 200_000):
            response = http.request("PATCH", files(f"{area}/d.json"), body, self.MEDIA)
            assert_error(response, 400, "INVALID_INPUT")
        assert http.read(f"{area}/d.json") == b"{}"

    def test_a_directory_cannot_be_merged_into(self, http: Client, area: str) -> None:
        http.store(f"{area}/d/x", b"")
        response = http.send_json("PATCH", files(f"{area}/d"), {"a": 1}, self.MEDIA)
        assert response.status in (400, 409)
