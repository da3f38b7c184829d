"""Many clients at once: no update is lost, no reader sees half a write."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from blake3 import blake3

from svc_blackbox.client import Client, files
from svc_blackbox.server import Server

CLIENTS = 32


def in_parallel(server: Server, count: int, work: Callable[[int, Client], None]) -> None:
    """Runs ``work`` in ``count`` threads that start together, each with a connection of its own."""
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        with Client(server.url, timeout=60) as client:
            barrier.wait()
            work(number, client)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(run, range(count)))


def count_up(client: Client, path: str, times: int) -> None:
    """Increments a counter file by compare-and-swap, trying again when somebody was faster."""
    for _ in range(times):
        while True:
            read = client.get(files(path))
            assert read.status == 200
            response = client.put_file(path, b"%d" % (int(read.body) + 1), {"If-Match": read["ETag"]})
            if response.status == 200:
                break
            assert response.status == 412, (response.status, response.body)


def test_32_clients_on_one_counter_lose_no_update(shared_server: Server, http: Client, area: str) -> None:
    http.store(f"{area}/counter", b"0")
    in_parallel(shared_server, CLIENTS, lambda _, client: count_up(client, f"{area}/counter", 4))
    assert http.read(f"{area}/counter") == b"%d" % (CLIENTS * 4)


def test_only_one_of_32_creates(shared_server: Server, http: Client, area: str) -> None:
    statuses: list[int] = []

    def create(number: int, client: Client) -> None:
        response = client.put_file(f"{area}/mine", b"%d" % number, {"If-None-Match": "*"})
        statuses.append(response.status)

    in_parallel(shared_server, CLIENTS, create)
    assert sorted(statuses) == [201] + [412] * (CLIENTS - 1)


def test_only_one_of_32_deletes(shared_server: Server, http: Client, area: str) -> None:
    http.store(f"{area}/victim", b"x")
    statuses: list[int] = []
    in_parallel(
        shared_server,
        CLIENTS,
        lambda _, client: statuses.append(client.delete(files(f"{area}/victim")).status),
    )
    assert sorted(statuses) == [200] + [404] * (CLIENTS - 1)


def test_writes_to_different_files_all_arrive(shared_server: Server, http: Client, area: str) -> None:
    contents = {(n, i): os.urandom(100 + 40_000 * (i % 3)) for n in range(16) for i in range(12)}

    def write(number: int, client: Client) -> None:
        for index in range(12):
            client.store(f"{area}/{number % 4}/{number}-{index}", contents[number, index])

    in_parallel(shared_server, 16, write)
    for (number, index), content in contents.items():
        assert http.read(f"{area}/{number % 4}/{number}-{index}") == content
    assert sum(item["file_count"] for item in http.listing(area)["items"]) == len(contents)


def test_readers_see_whole_contents_while_writers_write(
    shared_server: Server, http: Client, area: str
) -> None:
    size = 200_000
    http.store(f"{area}/f", b"a" * size)
    stop = threading.Event()

    def work(number: int, client: Client) -> None:
        if number < 3:
            for index in range(15):
                client.store(f"{area}/f", bytes([97 + (number * 15 + index) % 26]) * size)
            stop.set()
            return
        while not stop.is_set():
            response = client.get(files(f"{area}/f"))
            assert response.status == 200
            assert len(response.body) == size
            assert len(set(response.body)) == 1
            assert response["ETag"] == f'"{blake3(response.body).hexdigest()}"'

    in_parallel(shared_server, 8, work)


def test_a_batch_is_seen_whole_or_not_at_all(shared_server: Server, http: Client, area: str) -> None:
    names = [f"{area}/{number}" for number in range(10)]
    stop = threading.Event()

    def batch(value: int) -> dict[str, object]:
        return {"operations": [{"op": "put", "path": name, "content": str(value)} for name in names]}

    assert http.post("/files/batch", batch(0)).status == 200

    def work(number: int, client: Client) -> None:
        if number == 0:
            for value in range(1, 40):
                assert client.post("/files/batch", batch(value)).status == 200
            stop.set()
            return
        while not stop.is_set():
            page = client.listing(area, limit=100)
            assert len({item["hash"] for item in page["items"]}) == 1

    in_parallel(shared_server, 4, work)
    assert {http.read(name) for name in names} == {b"39"}


def test_a_read_after_an_answered_write_sees_it(new_server: Callable[..., Server]) -> None:
    server = new_server("workers", "--workers", "2")

    def work(number: int, client: Client) -> None:
        for index in range(25):
            content = b"%d %d" % (number, index)
            client.store(f"/w/{number}", content)
            with Client(server.url) as other:
                assert other.read(f"/w/{number}") == content

    in_parallel(server, 8, work)
    client = server.client()
    client.store("/counter", b"0")
    in_parallel(server, 16, lambda _, other: count_up(other, "/counter", 4))
    assert client.read("/counter") == b"64"
    assert server.stop() == 0


def test_slow_uploads_and_downloads_hold_up_nobody(shared_server: Server, http: Client, area: str) -> None:
    from svc_blackbox.raw import RawConnection

    http.store(f"{area}/large", os.urandom(8 << 20))
    uploads = [RawConnection(shared_server.url) for _ in range(40)]
    downloads = [RawConnection(shared_server.url) for _ in range(20)]
    try:
        for number, connection in enumerate(uploads):
            connection.send(
                f"PUT {files(area)}/u{number} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345".encode()
            )
        for connection in downloads:
            connection.send(f"GET {files(area)}/large HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        for index in range(20):
            http.store(f"{area}/quick", b"%d" % index)
            assert http.read(f"{area}/quick") == b"%d" % index
        for connection in uploads:
            connection.send(b"67890")
        for connection in uploads:
            response = connection.response()
            assert response is not None
            assert response.status == 201
        for connection in downloads:
            response = connection.response()
            assert response is not None
            assert len(response.body) == 8 << 20
    finally:
        for connection in [*uploads, *downloads]:
            connection.socket.close()
    assert http.read(f"{area}/u39") == b"1234567890"
