"""What was acknowledged is there after the server ended, however it ended."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_blackbox.client import Client, files, links
from svc_blackbox.raw import RawConnection
from svc_blackbox.server import Server, run_svc


def fill(client: Client) -> dict[str, bytes]:
    contents = {f"/d{number % 5}/f{number}": os.urandom(number * 3000) for number in range(60)}
    for path, content in contents.items():
        client.store(path, content)
    client.store("/gone", b"x")
    client.delete(files("/gone"))
    client.send_json("PUT", links("/link"), {"target": "/d1/f1"})
    client.post("/files/mkdir", {"path": "/empty"})
    return contents


def check(client: Client, contents: dict[str, bytes]) -> None:
    for path, content in contents.items():
        assert client.read(path) == content
    assert client.get(files("/gone")).status == 404
    assert client.read("/link") == contents["/d1/f1"]
    assert client.names("/empty") == []
    assert client.names("/") == ["d0", "d1", "d2", "d3", "d4", "empty", "link"]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_everything_is_there_after_a_restart(new_server: Callable[..., Server], end: str) -> None:
    server = new_server()
    client = server.client()
    contents = fill(client)
    version = client.head(files("/"))["X-Svc-Version"]
    if end == "stop":
        assert server.stop() == 0
    else:
        server.kill()
    client = server.start().client()
    check(client, contents)
    assert client.head(files("/"))["X-Svc-Version"] == version
    assert version in server.ready_line
    client.store("/after", b"goes on")
    assert server.stop() == 0
    run_svc("verify", "-D", server.database)


def test_the_one_file_is_the_whole_database(new_server: Callable[..., Server], tmp_path: Path) -> None:
    server = new_server()
    contents = fill(server.client())
    server.stop()
    shutil.copyfile(server.database, tmp_path / "copy.svcdb")
    shutil.rmtree(server.database.with_name(server.database.name + ".d"))
    for database in (tmp_path / "copy.svcdb", server.database):
        moved = Server(database).start()
        try:
            check(moved.client(), contents)
        finally:
            moved.close()


def test_deletions_that_were_listed_stay_listed(new_server: Callable[..., Server]) -> None:
    server = new_server()
    fill(server.client())
    server.kill()
    items = server.start().client().get("/files/deleted", path="/").json()["items"]
    assert [item["path"] for item in items] == ["/gone"]


def test_a_stop_lets_a_running_request_finish(new_server: Callable[..., Server]) -> None:
    server = new_server()
    url = server.url
    with RawConnection(url) as connection:
        connection.send(b"PUT /files/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345")
        time.sleep(0.3)
        codes: list[int] = []
        stopper = threading.Thread(target=lambda: codes.append(server.stop()))
        stopper.start()
        time.sleep(0.3)
        connection.send(b"67890")
        response = connection.response()
        assert response is not None
        assert response.status == 201
        stopper.join()
    assert codes == [0]
    assert server.start().client().read("/slow") == b"1234567890"


def test_a_stop_does_not_wait_for_idle_connections(new_server: Callable[..., Server]) -> None:
    server = new_server()
    idle = [RawConnection(server.url) for _ in range(5)]
    idle[0].send(b"GET /system/health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert idle[0].response() is not None
    start = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - start < 20
    for connection in idle:
        connection.socket.close()


def test_a_second_server_on_a_taken_port_says_so(new_server: Callable[..., Server], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run_svc(
            "start", "-D", tmp_path / "x.svcdb", "--auth", "disabled", "--port", port, check=False, timeout=60
        )
    assert result.returncode != 0
    assert b"Traceback" not in result.stderr
    assert str(port).encode() in result.stderr + result.stdout


def test_two_servers_share_one_database(new_server: Callable[..., Server], tmp_path: Path) -> None:
    one, two = new_server("shared"), new_server("shared")
    first, second = one.client(), two.client()
    for number in range(30):
        writer, reader = (first, second) if number % 2 else (second, first)
        writer.store(f"/f{number}", b"%d" % number)
        assert reader.read(f"/f{number}") == b"%d" % number
    assert len(first.names("/")) == 30
    one.kill()
    second.store("/after", b"x")
    assert two.stop() == 0
    run_svc("verify", "-D", two.database)


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all" * 100, b"SQLite format 3\x00" + b"\x00" * 4080]
)
def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    database = tmp_path / "other.svcdb"
    database.write_bytes(content)
    if not content:
        return_code = run_svc("verify", "-D", database, check=False).returncode
        assert return_code in (0, 3, 6, 7)
        return
    result = run_svc("start", "-D", database, "--auth", "disabled", "--port", "0", check=False, timeout=60)
    assert result.returncode == 6
    assert b"Traceback" not in result.stderr
    assert database.read_bytes() == content
