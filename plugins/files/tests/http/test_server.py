"""The file routes behind a real server: large bodies, broken connections, many clients at once."""

from __future__ import annotations

import http.client
import io
import json
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from blake3 import blake3

from svc.plugin import Database, collect
from svc_testing import Server, start_server

MIB = 1 << 20
CLIENTS = 32
STEPS = 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server with two workers for all tests of this module."""
    path = tmp_path_factory.mktemp("server") / "x.svcdb"
    with start_server(path, "--workers", "2", plugins=("files",)) as running:
        yield running


@contextmanager
def connect(server: Server) -> Iterator[http.client.HTTPConnection]:
    """One connection for several requests."""
    address = urlsplit(server.url)
    assert address.hostname is not None
    with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=60)) as connection:
        yield connection


def pieces(size: int) -> Iterator[bytes]:
    """Bytes that are the same in every run and do not compress."""
    reader = blake3(b"seed").digest
    for offset in range(0, size, MIB):
        yield reader(length=min(MIB, size - offset), seek=offset)


def in_parallel(count: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def test_a_large_file_goes_up_and_down_in_pieces_and_the_workers_stay_small(server: Server) -> None:
    size = 96 * MIB
    with connect(server) as connection:
        connection.request("PUT", "/files/large", body=pieces(size), encode_chunked=True,
                           headers={"Transfer-Encoding": "chunked"})  # fmt: skip
        stored = json.loads(connection.getresponse().read())
        assert stored["size"] == size
        connection.request("GET", "/files/large")
        answer = connection.getresponse()
        hasher = blake3()
        while piece := answer.read(MIB):
            hasher.update(piece)
        assert hasher.hexdigest() == stored["content_hash"]
        connection.request("POST", "/files/download", body=json.dumps({"paths": ["/large"]}),
                           headers={"Content-Type": "application/json"})  # fmt: skip
        archive = zipfile.ZipFile(io.BytesIO(connection.getresponse().read()))
        assert archive.testzip() is None
        for memory in _peak_memory(server.process.pid):
            assert memory < 150 * MIB


def _peak_memory(parent: int) -> list[int]:
    """Peak resident bytes of a process's children."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    found = []
    for child in children:
        status = Path(f"/proc/{child}/status").read_text().splitlines()
        found += [int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")]
    assert found
    return found


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_resumes_a_download(server: Server, tmp_path: Path) -> None:
    content = b"".join(pieces(3 * MIB))
    assert server.request("PUT", "/files/resume", body=content).status == 201
    target = tmp_path / "resume"
    target.write_bytes(content[:MIB])
    command = ["curl", "-sS", "--fail", "-C", "-", "-o", str(target), f"{server.url}/files/resume"]
    subprocess.run(command, check=True, timeout=60)
    assert target.read_bytes() == content


def test_an_upload_that_breaks_off_leaves_nothing(server: Server) -> None:
    with connect(server) as connection:
        connection.putrequest("PUT", "/files/broken")
        connection.putheader("Content-Length", str(4 * MIB))
        connection.endheaders()
        connection.send(b"x" * MIB)
    assert server.get("/files/broken").status == 404


def test_compare_and_swap_from_many_clients_loses_no_update(server: Server) -> None:
    server.request("PUT", "/files/counter", body=b"0")

    def work(number: int) -> None:
        with connect(server) as connection:
            for _ in range(STEPS):
                while True:
                    connection.request("GET", "/files/counter")
                    answer = connection.getresponse()
                    value, etag = int(answer.read()), answer.headers["ETag"]
                    connection.request(
                        "PUT", "/files/counter", body=b"%d" % (value + 1), headers={"If-Match": etag}
                    )
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == 200:
                        break
                    assert answer.status == 412

    in_parallel(CLIENTS, work)
    assert server.get("/files/counter").body == b"%d" % (CLIENTS * STEPS)


def test_merge_patches_from_many_clients_lose_no_update(server: Server) -> None:
    def work(number: int) -> None:
        with connect(server) as connection:
            for step in range(STEPS):
                body = json.dumps({"n": {f"{number}-{step}": number}})
                headers = {"Content-Type": "application/merge-patch+json"}
                connection.request("PATCH", "/files/document.json", body=body, headers=headers)
                answer = connection.getresponse()
                text = answer.read()
                assert answer.status in (200, 201), text

    in_parallel(CLIENTS, work)
    document = json.loads(server.get("/files/document.json").body)
    assert len(document["n"]) == CLIENTS * STEPS


def test_only_one_of_many_creates(server: Server) -> None:
    statuses: list[int] = []

    def work(number: int) -> None:
        headers = {"If-None-Match": "*"}
        statuses.append(server.request("PUT", "/files/only-one", body=b"%d" % number, headers=headers).status)

    in_parallel(CLIENTS, work)
    assert sorted(statuses) == [201] + [412] * (CLIENTS - 1)


def test_a_listing_of_many_files_is_streamed(server: Server) -> None:
    operations = [{"op": "put", "path": f"/many/{number:05}", "content": ""} for number in range(5000)]
    body = json.dumps({"operations": operations}).encode()
    answer = server.request("POST", "/files/batch", body=body, headers={"Content-Type": "application/json"})
    assert answer.status == 200
    with connect(server) as connection:
        connection.request("GET", "/files/many?depth=-1&limit=5000")
        listing = connection.getresponse()
        assert listing.headers["Transfer-Encoding"] == "chunked"
        assert len(json.loads(listing.read())["items"]) == 5000


def test_workers_see_each_others_deletions_at_once(server: Server) -> None:
    def work(number: int) -> None:
        path = f"/seen/{number}"
        server.request("PUT", f"/files{path}", body=b"x")
        server.request("DELETE", f"/files{path}")
        items = server.get(f"/files/deleted?path={path}").json()["items"]
        assert [item["path"] for item in items] == [path]

    in_parallel(8, work)


def test_a_slow_client_of_a_worker_is_waited_for_by_a_collection_elsewhere(tmp_path: Path) -> None:
    """The workers and the collection are processes of their own; locks on the log tell one of the other."""
    size = 24 * MIB
    path = tmp_path / "x.svcdb"
    with (
        start_server(path, "--workers", "2", plugins=("files",)) as running,
        connect(running) as slow,
        connect(running) as other,
        Database(path) as database,
    ):
        other.request("PUT", "/files/large", body=b"".join(pieces(size)))
        version = json.loads(other.getresponse().read())["version"]
        other.request("PUT", "/files/small", body=b"small")
        other.getresponse().read()
        slow.request("GET", "/files/large")
        answer = slow.getresponse()
        hasher = blake3(answer.read(1000))
        other.request("DELETE", "/files/large")
        other.getresponse().read()
        report = collect(database, wait_seconds=0.1, upload_hours=0)
        assert report.waiting is not None, "the client has most of the file before it"
        assert report.horizon > 1
        other.request("GET", f"/files/large?version={version}")
        gone = other.getresponse()
        assert (gone.status, json.loads(gone.read())["collected"]) == (404, True)
        while piece := answer.read(MIB):
            hasher.update(piece)
        assert hasher.digest() == blake3(b"".join(pieces(size))).digest()
        assert collect(database, wait_seconds=30, upload_hours=0).reclaimed_bytes > size
        other.request("GET", "/files/deleted")
        assert json.loads(other.getresponse().read())["items"] == []
        other.request("GET", "/files/small")
        assert other.getresponse().read() == b"small"
