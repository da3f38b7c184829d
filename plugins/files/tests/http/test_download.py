"""``/files/download``: ZIP archives that every program opens."""

from __future__ import annotations

import io
import zipfile

import pytest

from .conftest import Http  # noqa: TID252


def download(http: Http, *paths: str, **more: object) -> zipfile.ZipFile:
    answer = http.post("/files/download", {"paths": list(paths), **more})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/zip"
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    return archive


def test_files_and_directories_arrive_whole(http: Http) -> None:
    big = bytes(range(256)) * 8192
    http.put("/files/d/big.bin", big)
    http.put("/files/d/e/text.txt", "grüße " * 1000)
    http.post("/files/mkdir", {"path": "/d/empty"})
    http.put("/files/a%20%C3%A4.txt", b"x")
    archive = download(http, "/d", "/a ä.txt")
    assert sorted(archive.namelist()) == ["a ä.txt", "d/big.bin", "d/e/text.txt", "d/empty/"]
    assert archive.read("d/big.bin") == big
    assert archive.read("d/e/text.txt") == ("grüße " * 1000).encode()
    assert archive.getinfo("d/e/text.txt").compress_size < 1000


def test_the_whole_database_has_no_name_of_its_own(http: Http) -> None:
    http.fill("/a", "/d/b")
    assert download(http, "/").namelist() == ["a", "d/b"]


def test_equal_names_are_told_apart(http: Http) -> None:
    http.fill("/x/a.txt", "/y/a.txt", "/x/d/f", "/y/d/f")
    names = download(http, "/x/a.txt", "/y/a.txt", "/x/d", "/y/d").namelist()
    assert names == ["a.txt", "a (2).txt", "d/f", "d (2)/f"]


def test_links_to_files_are_followed_and_others_left_out(http: Http) -> None:
    http.fill("/target")
    for name, target in (
        ("file", "/target"),
        ("up", "/d"),
        ("dangling", "/none"),
        ("a", "/d/b"),
        ("b", "/none"),
    ):
        http("PUT", f"/links/d/{name}", json={"target": target})
    with http.database.transaction() as transaction:
        transaction.link(("d", "b"), "/d/a")
    archive = download(http, "/d")
    assert archive.namelist() == ["d/file"]
    assert archive.read("d/file") == b"/target"


def test_a_name_cannot_leave_the_directory_it_is_unpacked_in(http: Http) -> None:
    http.put("/files/d/..%5C..%5Cevil", b"x")
    assert download(http, "/d").namelist() == ["d/.._.._evil"]


def test_it_can_be_stored_without_compression_and_at_a_version(http: Http) -> None:
    version = http.put("/files/a.txt", b"x" * 5000).json["version"]
    http.put("/files/a.txt", b"new")
    assert download(http, "/a.txt", compress=False).getinfo("a.txt").compress_type == zipfile.ZIP_STORED
    answer = http.post("/files/download", {"paths": ["/a.txt"]}, params={"version": version})
    assert zipfile.ZipFile(io.BytesIO(answer.content)).read("a.txt") == b"x" * 5000
    assert 'filename="a.txt.zip"' in answer.headers["content-disposition"]


@pytest.mark.parametrize(
    ("paths", "status"),
    [(["/none"], 404), ([], 400), (["/.system"], 404), (["/.."], 400), (["/a", "/none"], 404)],
)
def test_what_cannot_be_packed_is_said_before_the_first_byte(
    http: Http, paths: list[str], status: int
) -> None:
    http.fill("/a")
    assert http.post("/files/download", {"paths": paths}).status_code == status
