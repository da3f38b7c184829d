"""``/files/mkdir`` and ``/files/copy``."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Http  # noqa: TID252


class TestMakeDirectory:
    def test_a_directory_and_its_parents_appear(self, http: Http) -> None:
        answer = http.post("/files/mkdir", {"path": "/a/b"})
        assert answer.status_code == 201
        assert (answer.json["path"], answer.json["entry_type"]) == ("/a/b", 3)
        assert http.items("/files/a") == ["/a/b"]

    def test_what_is_there_is_409_unless_it_may_be(self, http: Http) -> None:
        http.fill("/file", "/d/e")
        for path in ("/d", "/file", "/"):
            answer = http.post("/files/mkdir", {"path": path})
            assert (answer.status_code, answer.json["code"]) == (409, "ALREADY_EXISTS")
        assert http.post("/files/mkdir", {"path": "/d", "exist_ok": True}).status_code == 200
        assert http.post("/files/mkdir", {"path": "/file", "exist_ok": True}).status_code == 409
        assert http.post("/files/mkdir", {"path": "/file/x"}).status_code == 409

    @pytest.mark.parametrize(
        ("body", "status"),
        [({}, 400), ({"path": 1}, 400), ({"path": "/a/.."}, 400), ({"path": "/.system/a"}, 404), ([], 400)],
    )
    def test_a_bad_body(self, http: Http, body: Any, status: int) -> None:
        assert http.post("/files/mkdir", body).status_code == status


class TestCopy:
    def test_everything_goes_into_the_directory_and_costs_no_data(self, http: Http) -> None:
        http.put("/files/big", b"x" * 300_000)
        http.fill("/d/e/f")
        http("PUT", "/links/l", json={"target": "/big"})
        before = http.database.totals()
        sequence = http.database.head().sequence
        answer = http.post("/files/copy", {"paths": ["/big", "/d", "/l"], "destination": "/to/here"})
        assert answer.status_code == 200
        assert answer.json["copied"] == [
            {"from": "/big", "path": "/to/here/big", "entry_type": 2},
            {"from": "/d", "path": "/to/here/d", "entry_type": 3},
            {"from": "/l", "path": "/to/here/l", "entry_type": 8},
        ]
        assert http.database.head().sequence == sequence + 1
        assert http.database.totals().chunk_bytes == before.chunk_bytes
        assert http.get("/files/to/here/d/e/f").content == b"/d/e/f"
        assert http.get("/links/to/here/l").json["target"] == "/big"

    def test_what_is_there_stays_unless_overwriting_is_asked_for(self, http: Http) -> None:
        http.fill("/a", "/d/a", "/d/b/c", "/b")
        answer = http.post("/files/copy", {"paths": ["/a"], "destination": "/d"})
        assert (answer.status_code, answer.json["code"]) == (409, "ALREADY_EXISTS")
        over = {"paths": ["/a"], "destination": "/d", "overwrite": True}
        assert http.post("/files/copy", over).status_code == 200
        assert http.get("/files/d/a").content == b"/a"
        assert http.post("/files/copy", {**over, "paths": ["/b"]}).status_code == 409

    @pytest.mark.parametrize(
        ("paths", "destination", "status"),
        [
            (["/none"], "/d", 404),
            (["/a", "/none"], "/d", 404),
            (["/"], "/d", 400),
            (["/d"], "/d/e", 409),
            (["/a"], "/a", 409),
            (["/a"], "/a/b", 409),
            ([], "/d", 400),
            (["/a", "/d/a"], "/new", 409),
            (["/.svc-system"], "/d", 404),
            (["/a"], "/.svc-system", 404),
            (["/../a"], "/d", 400),
        ],
    )
    def test_what_cannot_be_copied_changes_nothing(
        self, http: Http, paths: list[str], destination: str, status: int
    ) -> None:
        http.fill("/a", "/d/a")
        version = http.get("/files").headers["x-svc-version"]
        assert http.post("/files/copy", {"paths": paths, "destination": destination}).status_code == status
        assert http.get("/files").headers["x-svc-version"] == version
