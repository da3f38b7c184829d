"""Clients ask for something long, and leave: the work for them ends within a second."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from attack.processes import cpu_seconds, wait_until_idle, workers
from attack.scale import scaled
from svc_blackbox.raw import RawConnection
from svc_blackbox.server import Server

FILES = 50
DOUBLINGS = 13
"""A directory of fifty files, doubled so often: 400,000 files, some seconds of walking."""

BEGIN_S = 0.3
NOTICED_S = 1.0


def get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def post(target: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


REQUESTS = {
    "a glob that matches nothing": get("/files/wide?depth=-1&glob=**/zzz"),
    "an offset beyond the end": get("/files/wide?depth=-1&glob=**/*&offset=1000000000"),
    "everything": get("/files/wide?depth=-1"),
    "an archive": post("/files/download", {"paths": ["/wide"]}),
    "a comparison": get("/versions/compare?from=before&to=HEAD"),
    "a merge": post("/versions/merge", {"from": "before", "into": "aside"}),
    "an export": post("/versions/export", {}),
}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with many files that a few nodes hold."""
    server = Server(
        tmp_path_factory.mktemp("leave") / "wide.svcdb", "--workers", "1", "--background", "false"
    ).start()
    client = server.client()
    client.store("/first", b"1")
    assert client.post("/versions/snapshots", {"name": "before"}).status in (200, 201)
    operations = [{"op": "put", "path": f"/wide/f/{number}", "content": "x"} for number in range(FILES)]
    assert client.post("/files/batch", {"operations": operations}).status == 200
    for number in range(DOUBLINGS):
        copy = [
            {"op": "copy", "path": "/wide/f", "to": f"/next{number}/b"},
            {"op": "move", "path": "/wide/f", "to": f"/next{number}/a"},
            {"op": "move", "path": f"/next{number}", "to": "/wide/f"},
        ]
        answer = client.post("/files/batch", {"operations": copy})
        assert answer.status == 200, answer.body
    assert client.post("/versions/forks", {"name": "aside"}).status in (200, 201)
    yield server
    server.close()


@pytest.mark.parametrize(
    ("what", "how"),
    [*((what, "at once") for what in REQUESTS), ("everything", "by half"), ("an archive", "by half")],
)
def test_the_work_ends_within_a_second(wide: Server, what: str, how: str) -> None:
    """By half: they say first that they will send no more."""
    (worker,) = workers(wide)
    for _ in range(scaled(1, most=3)):
        with RawConnection(wide.url) as connection:
            connection.send(REQUESTS[what])
            time.sleep(BEGIN_S)
            if how == "by half":
                connection.finish_sending()
        before = cpu_seconds(worker)
        wait_until_idle(worker, 60)
        # In time of the processor, which a busy machine does not stretch.
        assert cpu_seconds(worker) - before < NOTICED_S, wide.log_text()[-2000:]
    assert wide.client().get("/system/health").status == 200
    assert "Traceback" not in wide.log_text()


def test_many_who_leave_cost_no_more_than_a_moment_each(wide: Server) -> None:
    (worker,) = workers(wide)
    count = scaled(20, most=240)
    before = cpu_seconds(worker)
    for _ in range(count):
        with RawConnection(wide.url) as connection:
            connection.send(REQUESTS["a glob that matches nothing"])
    assert wide.client(60).read("/first") == b"1"
    wait_until_idle(worker, 120)
    # They share what there is of a second until they are noticed, and the clean-up of each takes a little.
    assert cpu_seconds(worker) - before < 2 * NOTICED_S + 0.01 * count
