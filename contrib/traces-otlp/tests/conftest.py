"""A collector on a real port that decodes what it is sent, and servers that send to it."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from svc.plugin import read_metrics
from svc_testing import Server, free_port, start_server

PLUGINS = ("files", "traces.otlp")


@dataclass(frozen=True)
class Span:
    """A span as it arrived."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    kind: int
    status: int
    start: int
    end: int
    attributes: dict[str, Any]
    resource: dict[str, Any]

    @property
    def is_of_client(self) -> bool:
        """Whether it is a request, and not that by which a server asks itself whether it answers."""
        return self.kind == 2 and self.attributes.get("http.route") != "/system/health"


@dataclass
class Collector:
    """What has arrived.

    Attributes:
        url: where it listens.
        raw: the messages as they came, unpacked.
        headers: the fields of the requests.
        answer: is called before each answer; returns its status.
    """

    url: str = ""
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer: Callable[[], int] = lambda: 200

    @property
    def spans(self) -> list[Span]:
        """The spans of all messages."""
        return [span for message in list(self.raw) for span in _spans(message)]

    def wait_for(self, count: int) -> list[Span]:
        """Waits until so many requests of clients are there; returns their spans."""
        deadline = time.monotonic() + 60
        while len(found := [span for span in self.spans if span.is_of_client]) < count:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found


def _spans(message: bytes) -> Iterator[Span]:
    for group in ExportTraceServiceRequest.FromString(message).resource_spans:
        for scope in group.scope_spans:
            assert scope.scope.name == "svc_traces_otlp"
            for one in scope.spans:
                yield Span(
                    name=one.name,
                    trace_id=one.trace_id.hex(),
                    span_id=one.span_id.hex(),
                    parent=one.parent_span_id.hex(),
                    kind=one.kind,
                    status=one.status.code,
                    start=one.start_time_unix_nano,
                    end=one.end_time_unix_nano,
                    attributes=_values(one.attributes),
                    resource=_values(group.resource.attributes),
                )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    """A collector, as long as the context lasts."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.headers["Content-Type"] == "application/x-protobuf"
            collector.headers.append({name.lower(): value for name, value in self.headers.items()})
            status = collector.answer()
            if status == 200:
                collector.raw.append(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_words: Any) -> None:
            pass

    class Listening(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        allow_reuse_address = True

        def handle_error(self, *_words: Any) -> None:
            pass  # A server that was stopped reads no answer.

    with Listening(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        collector.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
        yield collector
        server.shutdown()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@contextmanager
def tracing(path: Path, endpoint: str, *options: str, **settings: object) -> Iterator[Server]:
    """A server whose spans go to an endpoint."""
    chosen = {"endpoint": endpoint, "interval_seconds": 0.1, **settings}
    words = [
        word for name, value in chosen.items() for word in ("--plugin-option", f"traces.otlp.{name}={value}")
    ]
    with start_server(path, *words, *options, plugins=PLUGINS) as server:
        try:
            yield server
        finally:
            print(server.errors)  # Shown where a test fails.


def counted(server: Server, name: str, *labels: str) -> float:
    """What all processes of a server have counted."""
    return sum(
        one.values[0]
        for one in read_metrics(Path(f"{server.database_path}.d"))
        if one.declared.name == name and tuple(value for _, value in one.declared.labels) == labels
    )


def wait_until(holds: Callable[[], bool]) -> None:
    """Waits for what another process does."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def unused_endpoint() -> str:
    """Where nobody listens."""
    return f"http://127.0.0.1:{free_port()}/v1/traces"
