"""Path rules: what is one name, what is refused, and what looks strange and is fine."""

from __future__ import annotations

import unicodedata

import pytest

from svc_blackbox.client import Client, assert_error, files

INVALID = {
    "parent": "a/../b",
    "parent at the end": "a/..",
    "encoded parent": "a/%2e%2e/b",
    "half encoded parent": "a/.%2E/b",
    "parent behind an encoded slash": "a%2f..%2fb",
    "NUL": "a%00b",
    "newline": "a%0ab",
    "carriage return": "a%0db",
    "tab": "a%09b",
    "escape": "a%1bb",
    "delete": "a%7fb",
    "C1 control": "a%c2%85b",
    "not UTF-8": "a%ffb",
    "overlong slash": "a%c0%afb",
    "surrogate": "a%ed%a0%80b",
    "cut UTF-8": "a%e2%82",
    "segment of 256 bytes": "a" * 256,
    "segment of 258 bytes in 86 characters": "%e2%82%ac" * 86,
    "path of 4,097 bytes and more": "/".join(["d" * 200] * 21),
}


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("case", INVALID)
def test_invalid_paths_are_400(http: Client, method: str, case: str) -> None:
    body = {"PUT": b"x", "PATCH": b'{"to": "/x"}'}.get(method)
    response = http.request(method, f"/files/{INVALID[case]}", body, {"Content-Type": "application/json"})
    if method == "HEAD":
        assert response.status == 400
    else:
        assert_error(response, 400, "INVALID_PATH")


@pytest.mark.parametrize("case", INVALID)
@pytest.mark.parametrize("prefix", ["/engine/", "/links/"])
def test_invalid_paths_are_400_under_every_prefix(http: Client, prefix: str, case: str) -> None:
    assert_error(http.get(prefix + INVALID[case]), 400, "INVALID_PATH")


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/files/mkdir", {"path": "/a/../b"}),
        ("/files/mkdir", {"path": "/a\x00b"}),
        ("/files/copy", {"paths": ["/a/.."], "destination": "/x"}),
        ("/files/copy", {"paths": ["/a"], "destination": "/x\x7f"}),
        ("/files/fetch", {"paths": ["/a/../b"]}),
        ("/files/download", {"paths": ["/" + "x" * 256]}),
        ("/files/restore", {"path": "/a/../../etc/passwd"}),
    ],
)
def test_invalid_paths_in_bodies_are_400(http: Client, route: str, body: dict[str, object]) -> None:
    assert_error(http.post(route, body), 400, "INVALID_PATH")


FINE = [
    "plain",
    "with space",
    "  leading and trailing  ",
    "plus+sign&and=more",
    "percent%41",
    "percent%2e%2e",
    "question?mark",
    "hash#mark",
    "semi;colon:comma,",
    "quote'\"double",
    "back\\slash",
    "star*[glob]?",
    "...",
    "..a",
    "a..",
    ".hidden",
    "~tilde",
    "$HOME `date` $(id)",
    "ünïcödé",
    "日本語",
    "🦆",
    "a\u00a0b",
    "a\u200bb",
    "\u202etxt.exe",
    "<script>",
    "CON",
    "x" * 255,
    "€" * 85,
    "indexes.json",
    "mkdir",
    "batch",
]


@pytest.mark.parametrize("name", FINE)
def test_strange_names_are_just_names(http: Client, area: str, name: str) -> None:
    stored = http.store(f"{area}/{name}", name.encode())
    expected = unicodedata.normalize("NFC", f"{area}/{name}")
    assert stored["path"] == expected
    assert http.read(f"{area}/{name}") == name.encode()
    assert http.names(area) == [unicodedata.normalize("NFC", name)]
    assert http.head(files(f"{area}/{name}")).status == 200
    assert http.delete(files(f"{area}/{name}")).status == 200
    assert http.listing(area)["items"] == [] if http.get(files(area)).status == 200 else True


def test_a_long_path_of_4096_bytes_is_fine(http: Client, area: str) -> None:
    head = area
    while len(head) + 201 <= 4096 - 2:
        head += "/" + "d" * 200
    path = head + "/" + "e" * (4096 - len(head) - 1)
    assert len(path) == 4096
    http.store(path, b"deep")
    assert http.read(path) == b"deep"
    assert_error(http.put_file(path + "e", b""), 400, "INVALID_PATH")


@pytest.mark.parametrize("form", ["{0}/a/b", "{0}//a///b", "{0}/./a/././b", "/./{0}/a/b/.", "{0}/a/b/"])
def test_dots_and_empty_segments_collapse(http: Client, area: str, form: str) -> None:
    http.store(f"{area}/a/b", b"one file")
    assert http.get("/files" + form.format(area)).body == b"one file"


def test_percent_encoding_is_decoded_once(http: Client, area: str) -> None:
    assert http.request("PUT", f"/files{area}/%2561", b"literal").status == 201
    assert http.request("PUT", f"/files{area}/%61", b"letter").status == 201
    assert http.names(area) == ["%61", "a"]
    assert http.request("PUT", f"/files{area}/sub%2Ffile", b"slash").status == 201
    assert http.read(f"{area}/sub/file") == b"slash"


def test_a_plus_is_a_plus(http: Client, area: str) -> None:
    http.request("PUT", f"/files{area}/a+b", b"")
    assert http.names(area) == ["a+b"]


def test_composed_and_decomposed_names_are_the_same_file(http: Client, area: str) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    http.store(f"{area}/{decomposed}", b"1")
    assert http.put_file(f"{area}/{composed}", b"2").status == 200
    assert http.read(f"{area}/{decomposed}") == b"2"
    assert http.names(area) == [composed]


def test_compatibility_forms_stay_different(http: Client, area: str) -> None:
    http.store(f"{area}/\ufb01le", b"ligature")
    http.store(f"{area}/file", b"letters")
    assert len(http.names(area)) == 2


def test_case_matters(http: Client, area: str) -> None:
    http.store(f"{area}/File", b"1")
    http.store(f"{area}/file", b"2")
    assert http.names(area) == ["File", "file"]
