"""mkdir, copy, download, fetch, deleted and restore."""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import Any

import pytest
from blake3 import blake3

from svc_blackbox.client import Client, assert_error, files, links


class TestMkdir:
    def test_a_directory_and_its_parents(self, http: Client, area: str) -> None:
        assert http.post("/files/mkdir", {"path": f"{area}/a/b/c"}).status == 201
        assert http.names(f"{area}/a/b") == ["c"]
        assert http.get(files(f"{area}/a/b/c"))["X-Svc-Entry-Type"] == "directory"

    def test_a_taken_name_is_409(self, http: Client, area: str) -> None:
        http.store(f"{area}/file", b"")
        assert_error(http.post("/files/mkdir", {"path": f"{area}/file"}), 409)
        assert_error(http.post("/files/mkdir", {"path": f"{area}/file/below"}), 409)

    @pytest.mark.parametrize("body", [{}, {"path": 1}, {"path": None}, [], "x"])
    def test_bad_bodies_are_400(self, http: Client, body: Any) -> None:
        assert_error(http.post("/files/mkdir", body), 400, "INVALID_INPUT")


class TestCopy:
    def test_files_and_directories_into_a_directory(self, http: Client, area: str) -> None:
        content = os.urandom(300_000)
        http.store(f"{area}/f", content, {"Content-Type": "a/b"})
        http.store(f"{area}/d/x", b"x")
        http.store(f"{area}/d/y/z", b"z")
        http.post("/files/mkdir", {"path": f"{area}/to"})
        body = {"paths": [f"{area}/f", f"{area}/d"], "destination": f"{area}/to"}
        response = http.post("/files/copy", body)
        assert response.status in (200, 201), response.body
        assert response.json()["copied"]
        assert http.read(f"{area}/to/f") == content
        assert http.head(files(f"{area}/to/f"))["Content-Type"] == "a/b"
        assert http.read(f"{area}/to/d/y/z") == b"z"
        assert http.read(f"{area}/f") == content

    def test_a_copy_and_its_source_part_ways(self, http: Client, area: str) -> None:
        http.store(f"{area}/d/x", b"before")
        http.post("/files/mkdir", {"path": f"{area}/to"})
        http.post("/files/copy", {"paths": [f"{area}/d"], "destination": f"{area}/to"})
        http.store(f"{area}/d/x", b"after")
        assert http.read(f"{area}/to/d/x") == b"before"

    def test_what_is_missing_is_404_and_nothing_is_copied(self, http: Client, area: str) -> None:
        http.store(f"{area}/a", b"")
        http.post("/files/mkdir", {"path": f"{area}/to"})
        body = {"paths": [f"{area}/a", f"{area}/missing"], "destination": f"{area}/to"}
        assert_error(http.post("/files/copy", body), 404, "NOT_FOUND")
        assert http.names(f"{area}/to") == []

    @pytest.mark.parametrize(
        "body", [{}, {"paths": ["/a"]}, {"destination": "/a"}, {"paths": "/a", "destination": "/b"}, [], 1]
    )
    def test_bad_bodies_are_400(self, http: Client, body: Any) -> None:
        assert_error(http.post("/files/copy", body), 400, "INVALID_INPUT")


class TestDownload:
    def test_a_zip_of_files_and_directories(self, http: Client, area: str) -> None:
        contents = {"one.txt": b"1", "d/two.bin": os.urandom(500_000), "d/e/drei-ß.txt": b"3", "d/empty": b""}
        for name, content in contents.items():
            http.store(f"{area}/{name}", content)
        response = http.post("/files/download", {"paths": [f"{area}/one.txt", f"{area}/d"]})
        assert response.status == 200
        assert response.headers.get_content_type() == "application/zip"
        with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
            assert archive.testzip() is None
            found = {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}
        assert len(found) == len(contents)
        for name, content in contents.items():
            (match,) = [inside for inside in found if inside.endswith(name)]
            assert found[match] == content

    def test_no_name_in_a_zip_leads_out_of_it(self, http: Client, area: str) -> None:
        for name in ("..a", "back\\slash\\..\\x", "c:drive"):
            http.store(f"{area}/{name}", b"x")
        response = http.post("/files/download", {"paths": [area]})
        with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
            for name in archive.namelist():
                assert not name.startswith("/")
                assert ".." not in name.split("/")

    def test_what_is_missing_is_404(self, http: Client, area: str) -> None:
        assert_error(http.post("/files/download", {"paths": [f"{area}/missing"]}), 404, "NOT_FOUND")

    @pytest.mark.parametrize("body", [{}, {"paths": "/a"}, {"paths": [1]}, [], None])
    def test_bad_bodies_are_400(self, http: Client, body: Any) -> None:
        assert_error(http.post("/files/download", body), 400, "INVALID_INPUT")


class TestFetch:
    def fetched(self, http: Client, body: Any) -> list[dict[str, Any]]:
        response = http.post("/files/fetch", body)
        assert response.status == 200, response.body
        items: list[dict[str, Any]] = response.json()["items"]
        return items

    def test_the_contents_of_many_files_in_one_answer(self, http: Client, area: str) -> None:
        for number in range(50):
            http.store(f"{area}/{number}", b"content %d" % number)
        items = self.fetched(http, {"paths": [f"{area}/{number}" for number in range(50)]})
        assert [item["content"] for item in items] == [f"content {number}" for number in range(50)]
        assert items[7]["path"] == f"{area}/7"
        assert items[7]["content_hash"] == blake3(b"content 7").hexdigest()

    def test_parts_of_files(self, http: Client, area: str) -> None:
        text = "".join(f"line {number} ä\n" for number in range(1, 11))
        http.store(f"{area}/t", text.encode(), {"Content-Type": "text/plain"})
        document = {"a": {"b": [10, 20, {"c/d": "deep"}]}}
        http.store(f"{area}/j", json.dumps(document).encode(), {"Content-Type": "application/json"})
        items = self.fetched(
            http,
            {
                "items": [
                    {"path": f"{area}/t", "lines": [2, 3]},
                    {"path": f"{area}/t", "bytes": [0, 6]},
                    {"path": f"{area}/t", "chars": [5, 8]},
                    {"path": f"{area}/j", "json_pointer": "/a/b/2/c~1d"},
                ]
            },
        )
        assert items[0]["content"].startswith("line 2 ä\n")
        assert len(items) == 4

    def test_a_stale_content_hash_is_409(self, http: Client, area: str) -> None:
        current = http.store(f"{area}/f", b"now")["content_hash"]
        body = {"items": [{"path": f"{area}/f", "if_content_hash": current}]}
        assert http.post("/files/fetch", body).status == 200
        body["items"][0]["if_content_hash"] = blake3(b"before").hexdigest()
        assert_error(http.post("/files/fetch", body), 409)

    def test_more_than_ten_thousand_paths_are_413(self, http: Client) -> None:
        assert_error(http.post("/files/fetch", {"paths": ["/x"] * 10_001}), 413, "PAYLOAD_TOO_LARGE")

    @pytest.mark.parametrize(
        "body",
        [{}, {"paths": 1}, {"items": [1]}, {"items": [{}]}, {"items": [{"path": "/x", "lines": "a"}]}, []],
    )
    def test_bad_bodies_are_400(self, http: Client, body: Any) -> None:
        assert_error(http.post("/files/fetch", body), 400, "INVALID_INPUT")


class TestDeletedAndRestore:
    def deleted(self, http: Client, area: str) -> list[dict[str, Any]]:
        response = http.get("/files/deleted", path=area)
        assert response.status == 200, response.body
        items: list[dict[str, Any]] = response.json()["items"]
        return items

    def test_a_deleted_file_is_listed_and_comes_back(self, http: Client, area: str) -> None:
        stored = http.store(f"{area}/f", b"precious", {"Content-Type": "a/b"})
        http.delete(files(f"{area}/f"))
        (item,) = self.deleted(http, area)
        assert item["path"] == f"{area}/f"
        assert item["size"] == 8
        assert item["content_hash"] == stored["content_hash"]
        assert item["deleted_at"] >= stored["updated_at"]
        response = http.post("/files/restore", {"path": f"{area}/f"})
        assert response.status in (200, 201), response.body
        assert http.read(f"{area}/f") == b"precious"
        assert http.head(files(f"{area}/f"))["Content-Type"] == "a/b"
        assert self.deleted(http, area) == []

    def test_everything_of_a_deleted_directory_is_listed(self, http: Client, area: str) -> None:
        for name in ("a", "s/b", "s/t/c"):
            http.store(f"{area}/d/{name}", name.encode())
        http.delete(files(f"{area}/d"), recursive="true")
        paths = {item["path"] for item in self.deleted(http, area)}
        assert {f"{area}/d/{name}" for name in ("a", "s/b", "s/t/c")} <= paths

    def test_an_earlier_content_comes_back_by_its_version(self, http: Client, area: str) -> None:
        first = http.store(f"{area}/f", b"first")["version"]
        http.store(f"{area}/f", b"second")
        http.delete(files(f"{area}/f"))
        assert http.post("/files/restore", {"path": f"{area}/f", "version": first}).status in (200, 201)
        assert http.read(f"{area}/f") == b"first"

    def test_a_file_made_anew_is_no_longer_deleted(self, http: Client, area: str) -> None:
        http.store(f"{area}/f", b"1")
        http.delete(files(f"{area}/f"))
        http.store(f"{area}/f", b"2")
        assert self.deleted(http, area) == []

    def test_a_moved_file_is_not_deleted(self, http: Client, area: str) -> None:
        http.store(f"{area}/f", b"1")
        http.send_json("PATCH", files(f"{area}/f"), {"to": f"{area}/g"})
        assert self.deleted(http, area) == []

    def test_a_listing_may_include_deleted_files(self, http: Client, area: str) -> None:
        http.store(f"{area}/kept", b"")
        http.store(f"{area}/gone", b"")
        http.delete(files(f"{area}/gone"))
        assert http.names(area) == ["kept"]
        assert set(http.names(area, deleted="true")) == {"gone", "kept"}

    def test_what_never_was_cannot_come_back(self, http: Client, area: str) -> None:
        assert_error(http.post("/files/restore", {"path": f"{area}/never"}), 404, "NOT_FOUND")
        assert_error(http.post("/files/restore", {"path": f"{area}/never", "version": "zz"}), 400)

    @pytest.mark.parametrize("body", [{}, {"path": 1}, [], {"path": "/x", "version": 7}])
    def test_bad_bodies_are_400(self, http: Client, body: Any) -> None:
        assert_error(http.post("/files/restore", body), 400, "INVALID_INPUT")

    def test_links_are_deleted_and_restored_as_links(self, http: Client, area: str) -> None:
        http.store(f"{area}/t", b"t")
        http.send_json("PUT", links(f"{area}/l"), {"target": f"{area}/t"})
        version = http.head(files(area))["X-Svc-Version"]
        http.delete(files(f"{area}/l"))
        assert http.post("/files/restore", {"path": f"{area}/l", "version": version}).status in (200, 201)
        assert http.get(links(f"{area}/l")).json()["target"] == f"{area}/t"
