"""curl as people use it: upload, download, resume, and ask only for what changed."""

from __future__ import annotations

import os
import subprocess
import zipfile
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

from svc_blackbox.client import Client, files
from svc_blackbox.server import Server


def curl(*arguments: str) -> str:
    """Runs curl; it must succeed. Returns what it printed."""
    command = ["curl", "--silent", "--show-error", "--fail", "--max-time", "30", *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, (command, result.stdout, result.stderr)
    return result.stdout


STATUS = ("--write-out", "%{http_code}", "--output", os.devnull)


def test_curl_uploads_a_file_and_a_pipe(
    shared_server: Server, http: Client, area: str, tmp_path: Path
) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(os.urandom(3_000_000))
    assert curl(*STATUS, "-T", str(source), shared_server.url + files(f"{area}/a")) == "201"
    assert http.read(f"{area}/a") == source.read_bytes()
    with source.open("rb") as pipe:
        subprocess.run(
            ["curl", "--silent", "--fail", "-T", "-", shared_server.url + files(f"{area}/b")],
            stdin=pipe,
            check=True,
            capture_output=True,
        )
    assert http.read(f"{area}/b") == source.read_bytes()


def test_curl_and_others_get_the_413_of_a_body_that_they_send(shared_server: Server, tmp_path: Path) -> None:
    body = tmp_path / "body"
    with body.open("wb") as file:
        file.truncate(40 << 20)
    url = shared_server.url + "/files/batch"
    for more in ((), ("-H", "Expect:"), ("-H", "Expect:", "-H", "Transfer-Encoding: chunked")):
        words = ["curl", "-sS", "--max-time", "60", "-w", " %{http_code}", "--data-binary", f"@{body}", *more]
        done = subprocess.run(
            [*words, "-H", "Content-Type: application/json", url], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(" 413")
    # It sends the whole body before it reads anything.
    connection = HTTPConnection(shared_server.url.partition("://")[2], timeout=60)
    with body.open("rb") as file, closing(connection):
        headers = {"Content-Type": "application/json", "Content-Length": str(40 << 20)}
        connection.request("POST", "/files/batch", body=file, headers=headers)
        assert connection.getresponse().status == 413


def test_curl_resumes_a_download(shared_server: Server, http: Client, area: str, tmp_path: Path) -> None:
    content = os.urandom(2_000_000)
    http.store(f"{area}/large", content)
    target = tmp_path / "large"
    for have in (0, 1, 65_536, 1_999_999):
        target.write_bytes(content[:have])
        report = curl(
            "-C",
            "-",
            "-o",
            str(target),
            "-w",
            "%{http_code} %{size_download}",
            shared_server.url + files(f"{area}/large"),
        )
        assert report == f"{206 if have else 200} {len(content) - have}"
        assert target.read_bytes() == content


def test_curl_asks_only_for_what_changed(
    shared_server: Server, http: Client, area: str, tmp_path: Path
) -> None:
    http.store(f"{area}/page", b"first")
    url, etag, page = shared_server.url + files(f"{area}/page"), tmp_path / "etag", tmp_path / "page"
    conditional = (
        "--etag-save",
        str(etag),
        "--etag-compare",
        str(etag),
        "-o",
        str(page),
        "-w",
        "%{http_code}",
    )
    etag.write_text("")
    assert curl(*conditional, url) == "200"
    assert curl(*conditional, url) == "304"
    assert page.read_bytes() == b"first"
    http.store(f"{area}/page", b"second")
    assert curl(*conditional, url) == "200"
    assert page.read_bytes() == b"second"


def test_curl_fetches_several_parts(shared_server: Server, http: Client, area: str) -> None:
    http.store(f"{area}/letters", b"abcdefghij")
    assert curl("-r", "2-4", shared_server.url + files(f"{area}/letters")) == "cde"
    assert curl("-r", "-2", shared_server.url + files(f"{area}/letters")) == "ij"


def test_curl_downloads_a_zip_that_unzip_opens(
    shared_server: Server, http: Client, area: str, tmp_path: Path
) -> None:
    for number in range(20):
        http.store(f"{area}/d/{number}.txt", b"%d" % number * 1000)
    archive = tmp_path / "all.zip"
    body = f'{{"paths": ["{area}/d"]}}'
    curl("--json", body, "-o", str(archive), shared_server.url + "/files/download")
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None
        assert len([name for name in opened.namelist() if name.endswith(".txt")]) == 20


def test_curl_deletes(shared_server: Server, http: Client, area: str) -> None:
    http.store(f"{area}/x", b"")
    assert curl(*STATUS, "-X", "DELETE", shared_server.url + files(f"{area}/x")) == "200"
    assert http.get(files(f"{area}/x")).status == 404
