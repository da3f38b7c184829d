"""A small WSGI application: it tells what it was asked, and misbehaves on request."""

from __future__ import annotations

import gc
import json
import os
import sys
import time

from svc_worker import pause
from svc_worker.connections import Connection

FILE = os.environ.get("ECHO_FILE", "")


def echo(environ, start_response):
    body = environ["wsgi.input"].read()
    headers = {key: value for key, value in environ.items() if key.startswith(("HTTP_", "CONTENT_"))}
    answer = {
        "method": environ["REQUEST_METHOD"],
        "path": environ["PATH_INFO"],
        "query": environ["QUERY_STRING"],
        "raw": environ["RAW_URI"],
        "scheme": environ["wsgi.url_scheme"],
        "protocol": environ["SERVER_PROTOCOL"],
        "remote": environ.get("REMOTE_ADDR"),
        "headers": headers,
        "body": body.decode("latin-1"),
        "process": os.getpid(),
    }
    data = json.dumps(answer).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
    return [data]


def unread(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"unread"]


def stream(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return (piece for piece in (b"one", b"", b"two", b"x" * 100_000))


def nothing(environ, start_response):
    start_response("204 No Content", [("Content-Length", "5")])
    return [b"never"]


def unchanged(environ, start_response):
    start_response("304 Not Modified", [("ETag", '"1"'), ("Content-Length", "5")])
    return [b"never"]


def empty(environ, start_response):
    start_response("200 OK", [])
    return []


def fail_before(environ, start_response):
    raise RuntimeError("before")


def leave(environ, start_response):
    sys.exit(1)


def fail_after(environ, start_response):
    start_response("200 OK", [("Content-Length", "100")])
    yield b"half"
    raise RuntimeError("after")


def short(environ, start_response):
    start_response("200 OK", [("Content-Length", "100")])
    return [b"short"]


def long(environ, start_response):
    start_response("200 OK", [("Content-Length", "4")])
    return [b"lo", b"nger"]


def repair(environ, start_response):
    start_response("200 OK", [("X-First", "1")])
    try:
        raise ValueError("changed its mind")
    except ValueError:
        start_response("409 Conflict", [("X-Second", "2")], sys.exc_info())
    return [b"repaired"]


def too_late(environ, start_response):
    write = start_response("200 OK", [])
    write(b"out")
    try:
        raise ValueError("changed its mind")
    except ValueError:
        start_response("500 Oops", [], sys.exc_info())
    return []


def twice(environ, start_response):
    start_response("200 OK", [])
    start_response("200 OK", [])
    return []


def writes(environ, start_response):
    write = start_response("200 OK", [("Content-Length", "9")])
    write(b"abc")
    write(b"def")
    return [b"ghi"]


def split_header(environ, start_response):
    start_response("200 OK", [("X-Bad", "a\r\nSet-Cookie: b")])
    return []


def text_body(environ, start_response):
    start_response("200 OK", [])
    return ["text"]


def hop(environ, start_response):
    start_response("200 OK", [("Transfer-Encoding", "gzip"), ("Connection", "close"), ("Keep-Alive", "5")])
    return [b"x"]


def file(environ, start_response):
    opened = open(FILE, "rb")  # noqa: SIM115 - the server closes it
    opened.seek(int(environ["QUERY_STRING"] or 0))
    start_response("200 OK", [("Content-Type", "application/octet-stream")])
    return environ["wsgi.file_wrapper"](opened)


def segments(environ, start_response):
    opened = open(FILE, "rb")  # noqa: SIM115 - the server closes it
    segment = environ["svc.file_segment"]
    start_response("200 OK", [("Content-Type", "application/octet-stream")])

    class Pieces:
        def __iter__(self):
            yield b"head:"
            yield segment(opened.fileno(), 10, 100_000)
            yield b":tail"

        close = opened.close

    return Pieces()


def lines(environ, start_response):
    source = environ["wsgi.input"]
    found = [source.readline(), source.readline(3), source.read(2), *source]
    data = json.dumps([line.decode() for line in found]).encode()
    start_response("200 OK", [("Content-Length", str(len(data)))])
    return [data]


def pieces(environ, start_response):
    sizes, total = [], 0
    for piece in environ["wsgi.input"].pieces():
        sizes.append(len(piece))
        total += sum(piece[:: max(1, len(piece) // 7)])
    data = json.dumps({"size": sum(sizes), "largest": max(sizes, default=0)}).encode()
    start_response("200 OK", [("Content-Length", str(len(data)))])
    return [data]


def reads(environ, start_response):
    size = int(environ["QUERY_STRING"])
    source, count, calls = environ["wsgi.input"], 0, 0
    while piece := source.read(size):
        count += len(piece)
        calls += 1
    data = json.dumps({"size": count, "calls": calls}).encode()
    start_response("200 OK", [("Content-Length", str(len(data)))])
    return [data]


def slow(environ, start_response):
    time.sleep(float(environ["QUERY_STRING"] or 1))
    start_response("200 OK", [("Content-Length", "4")])
    return [b"slow"]


def endless(environ, start_response):
    start_response("200 OK", [])
    while True:
        yield b"x" * 65536


def _work(seconds):
    """Works, with turns for others."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            sum(range(2000))
            pause()
    finally:
        print("worked on" if time.monotonic() >= end else "stopped", flush=True)


def compute(environ, start_response):
    _work(float(environ["QUERY_STRING"]))
    start_response("200 OK", [("Content-Length", "8")])
    return [b"computed"]


def compute_badly(environ, start_response):
    _work(float(environ["QUERY_STRING"]))
    raise RuntimeError("badly")


def compute_between(environ, start_response):
    start_response("200 OK", [])
    yield b"before"
    _work(float(environ["QUERY_STRING"]))
    yield b"after"


def compute_declared(environ, start_response):
    start_response("200 OK", [("Content-Length", "11")])
    yield b"before"
    _work(float(environ["QUERY_STRING"]))
    yield b"after"


def complain(environ, start_response):
    environ["wsgi.errors"].write("a complaint\n")
    environ["wsgi.errors"].flush()
    start_response("200 OK", [])
    return [b"ok"]


def count_connections(environ, start_response):
    """Tells how many connections are in memory. From the first call on the collector frees none of them."""
    gc.disable()
    count = sum(type(thing) is Connection for thing in gc.get_objects())
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(count).encode()]


ROUTES = {
    f"/{function.__name__.replace('_', '-')}": function
    for function in (
        unread,
        stream,
        nothing,
        unchanged,
        empty,
        fail_before,
        leave,
        fail_after,
        short,
        long,
        repair,
        too_late,
        twice,
        writes,
        split_header,
        text_body,
        hop,
        file,
        segments,
        lines,
        pieces,
        reads,
        slow,
        endless,
        compute,
        compute_badly,
        compute_between,
        compute_declared,
        complain,
        count_connections,
    )
}


def app(environ, start_response):
    return ROUTES.get(environ["PATH_INFO"], echo)(environ, start_response)
