"""Deleted files: listed, and brought back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from svc.plugin import View
from svc_files import deleted_view
from svc_files.deleted_view import DELETED_VIEW, DeletedFilesView
from svc_testing import ViewContract, simulate_collection

from .conftest import Http  # noqa: TID252


class TestDeletedFilesView(ViewContract):
    @pytest.fixture(params=[1, 256])
    def view(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> View:
        monkeypatch.setattr(deleted_view, "_CHANGES_PER_STEP", request.param)
        return DeletedFilesView()


def deleted(http: Http, path: str = "/") -> list[str]:
    return [item["path"] for item in http.get("/files/deleted", params={"path": path}).json["items"]]


def test_a_deleted_file_is_listed_with_what_it_was(http: Http) -> None:
    stored = http.put("/files/a.txt", b"hello").json
    http.delete("/files/a.txt")
    (item,) = http.get("/files/deleted").json["items"]
    assert (item["path"], item["size"], item["content_hash"]) == ("/a.txt", 5, stored["content_hash"])
    assert item["deleted_at"] >= stored["updated_at"]


def test_a_directory_that_is_deleted_lists_every_file_below(http: Http) -> None:
    http.fill("/d/a", "/d/e/b", "/x")
    http("PUT", "/links/d/l", json={"target": "/x"})
    http.delete("/files/d", params={"recursive": "true"})
    assert deleted(http) == ["/d/a", "/d/e/b", "/d/l"]
    assert deleted(http, "/d/e") == ["/d/e/b"]
    assert deleted(http, "/d/e/b") == ["/d/e/b"]
    assert deleted(http, "/x") == []


def test_what_is_put_again_leaves_the_list_whichever_way_it_comes(http: Http) -> None:
    names = ["/a", "/b", "/c", "/d", "/e/f", "/g/h"]
    http.fill(*names, "/keep", "/tree/f", "/tree/h")
    for name in names:
        http.delete(f"/files{name}")
    assert deleted(http) == names
    http.put("/files/a", b"again")
    http("PATCH", "/files/keep", json={"to": "/b"})
    http("PUT", "/links/c", json={"target": "/a"})
    http.put("/files/d/below", b"a directory now")
    http.post("/files/batch", {"operations": [{"op": "copy", "from": "/tree/f", "to": "/e/f"}]})
    assert deleted(http) == ["/g/h"]


def test_a_move_or_an_overwrite_is_no_deletion(http: Http) -> None:
    http.fill("/a", "/b", "/d/e")
    http("PATCH", "/files/a", json={"to": "/b", "overwrite": True})
    http("PATCH", "/files/d", json={"to": "/f"})
    http.put("/files/b", b"over")
    assert deleted(http) == []


def test_pages_of_deleted_files(http: Http) -> None:
    names = [f"/d/f{number:02}" for number in range(25)]
    http.fill(*names)
    http.delete("/files/d", params={"recursive": "true"})
    seen: list[str] = []
    params = {"limit": "7"}
    while True:
        page = http.get("/files/deleted", params=params).json
        seen += [item["path"] for item in page["items"]]
        if not page["has_more"]:
            break
        params["after"] = page["next_cursor"]
    assert seen == names


def test_very_long_paths_keep_their_order_and_their_pages(http: Http) -> None:
    directory = "/" + "/".join(["n" * 200] * 3)
    names = [f"{directory}/{number:03}" for number in range(40)]
    http.fill(*names)
    http.delete(f"/files/{'n' * 200}", params={"recursive": "true"})
    first = http.get("/files/deleted", params={"limit": "17"}).json
    rest = http.get("/files/deleted", params={"limit": "100", "after": first["next_cursor"]}).json
    assert [item["path"] for item in first["items"] + rest["items"]] == names


def test_a_deleted_file_comes_back_with_content_times_and_type(http: Http) -> None:
    before = http.put("/files/d/a.txt", b"hello", headers={"X-Svc-Updated-At": "5000"}).json
    http.delete("/files/d", params={"recursive": "true"})
    answer = http.post("/files/restore", {"path": "/d/a.txt"})
    assert answer.status_code == 200
    assert (answer.json["restored"], answer.json["path"]) == (True, "/d/a.txt")
    for field in ("size", "content_type", "content_hash", "updated_at", "created_at"):
        assert answer.json[field] == before[field]
    assert http.get("/files/d/a.txt").content == b"hello"
    assert deleted(http) == []


def test_a_deleted_directory_comes_back_whole(http: Http) -> None:
    http.fill("/d/a", "/d/e/b", "/d/kept")
    version = http.get("/files").headers["x-svc-version"]
    http.delete("/files/d/e", params={"recursive": "true"})
    http.delete("/files/d/a")
    sequence = http.database.head().sequence
    assert http.post("/files/restore", {"path": "/d"}).json["files"] == 2
    assert http.database.head().sequence == sequence + 1
    http.delete("/files/d", params={"recursive": "true"})
    assert http.post("/files/restore", {"path": "/d", "version": version}).status_code == 200
    assert http.items("/files", params={"depth": "-1"}) == ["/d/a", "/d/e/b", "/d/kept"]
    assert deleted(http) == []


def test_an_older_state_comes_back_from_its_version(http: Http) -> None:
    version = http.put("/files/a", b"old").json["version"]
    http.put("/files/a", b"new")
    assert http.post("/files/restore", {"path": "/a", "version": version}).status_code == 409
    http.delete("/files/a")
    http.post("/files/restore", {"path": "/a", "version": version})
    assert http.get("/files/a").content == b"old"


def test_what_cannot_be_restored(http: Http) -> None:
    version = http.put("/files/a", b"x").json["version"]
    assert http.post("/files/restore", {"path": "/a"}).status_code == 409
    assert http.post("/files/restore", {"path": "/none"}).status_code == 404
    assert http.post("/files/restore", {"path": "/none", "version": version}).status_code == 404
    assert http.post("/files/restore", {"path": "/a", "version": "0" * 64}).status_code == 404
    assert http.post("/files/restore", {"path": "/a", "version": "zz"}).status_code == 400
    assert http.post("/files/restore", {"path": "/.system/a"}).status_code == 404
    assert http.post("/files/restore", {}).status_code == 400
    http.delete("/files/a")
    http.put("/files/a/b", b"a directory now")
    assert http.post("/files/restore", {"path": "/a"}).status_code in (404, 409)


def test_a_head_that_went_back_counts_what_vanished(http: Http) -> None:
    http.fill("/a")
    old = http.database.head().root
    http.fill("/b")
    http.delete("/files/a")
    with http.database.transaction() as transaction:
        transaction.set_ref("HEAD", old)
    assert http.items("/files") == ["/a"]
    assert deleted(http) == ["/b"]


def test_a_deleted_directory_is_one_row_however_much_it_held(http: Http) -> None:
    http.fill("/d/a")
    for number in range(12):
        http.post("/files/copy", {"paths": ["/d"], "destination": f"/c{number}"})
        http("PATCH", f"/files/c{number}", json={"to": f"/d/{number}"})
    http.delete("/files/d", params={"recursive": "true"})
    rows = http.database.view("files.deleted").read(lambda storage: len(list(storage.scan())))
    assert rows == 2
    page = http.get("/files/deleted", params={"limit": "3"}).json
    assert [item["path"] for item in page["items"]] == ["/d/0/d/a", "/d/1/d/0/d/a", "/d/1/d/a"]
    assert page["has_more"]
    page = http.get("/files/deleted", params={"path": "/d/11/d/9", "limit": "20"}).json
    assert len(page["items"]) == 20


def test_a_page_ends_where_it_has_looked_at_enough(http: Http, set_limits: Callable[..., None]) -> None:
    names = [f"/d/f{number:02}" for number in range(25)]
    http.fill(*names)
    http.delete("/files/d", params={"recursive": "true"})
    for name in names[:20]:
        http.put(f"/files{name}", b"again")
    set_limits(scan_entries=8)
    seen: list[list[str]] = []
    params: dict[str, str] = {}
    while True:
        page = http.get("/files/deleted", params=params).json
        seen.append([item["path"] for item in page["items"]])
        if not page["has_more"]:
            break
        params["after"] = page["next_cursor"]
    assert [name for names in seen for name in names] == names[20:]
    assert len(seen) >= 3
    assert not seen[0]
    assert http.post("/files/restore", {"path": "/d"}).status_code == 413


def test_a_listing_with_deleted_files_ends_where_it_has_looked_at_enough(
    http: Http, set_limits: Callable[..., None]
) -> None:
    names = [f"/d/f{number:02}" for number in range(25)]
    http.fill(*names)
    http.delete("/files/d", params={"recursive": "true"})
    for name in names[:20]:
        http.put(f"/files{name}", b"again")
    whole = http.get("/files/d", params={"deleted": "true"}).json["items"]
    assert [(item["path"], item.get("deleted", False)) for item in whole] == [
        (name, number >= 20) for number, name in enumerate(names)
    ]
    set_limits(scan_entries=8)
    for depth in ("0", "-1"):
        pages, params = [], {"deleted": "true", "depth": depth, "glob": "f2?"}
        while True:
            page = http.get("/files/d", params=params).json
            pages.append([item["path"] for item in page["items"]])
            if not page["has_more"]:
                break
            params["after"] = page["next_cursor"]
        assert [path for paths in pages for path in paths] == names[20:]
        assert not pages[0]
        assert len(pages) >= 3


@pytest.mark.parametrize("keeps_up", [True, False], ids=["kept up", "not yet"])
def test_what_was_collected_is_not_listed_and_a_restore_says_so(http: Http, *, keeps_up: bool) -> None:
    http.fill("/a", "/b", "/d/x", "/later/x")
    http.delete("/files/a")
    http.delete("/files/d", params={"recursive": "true"})
    old = http.database.head().root.hex()
    http.put("/files/e", b"e")
    assert deleted(http) == ["/a", "/d/x"]
    simulate_collection(http.database)
    if keeps_up:
        while http.database.view(DELETED_VIEW).work():
            pass
    assert deleted(http) == []
    for path in ("/a", "/d/x", "/d"):
        answer = http.post("/files/restore", {"path": path})
        assert (answer.status_code, answer.json.get("collected")) == (404, True), answer.text
        assert "was collected" in answer.json["error"]
    answer = http.post("/files/restore", {"path": "/never"})
    assert (answer.status_code, "collected" in answer.json) == (404, False)
    answer = http.post("/files/restore", {"path": "/a", "version": old})
    assert (answer.status_code, answer.json["collected"]) == (404, True)
    http.delete("/files/b")
    http.delete("/files/later", params={"recursive": "true"})
    assert deleted(http) == ["/b", "/later/x"]
    assert http.post("/files/restore", {"path": "/b"}).status_code == 200
    assert http.post("/files/restore", {"path": "/later/x"}).status_code == 200
    assert [http.get(f"/files{path}").status_code for path in ("/b", "/later/x", "/a")] == [200, 200, 404]
