"""The least that streams events to many: a list of frames, and one loop for each client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gevent.event import Event

_frames: list[bytes] = []
_moved = Event()


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Streams all frames from now on; the body of a PUT is the next one."""
    if environ["REQUEST_METHOD"] == "PUT":
        _publish(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        start_response("200 OK", [("Content-Length", "0")])
        return []
    start_response("200 OK", [("Content-Type", "text/event-stream")])
    return _stream(len(_frames))


def _publish(frame: bytes) -> None:
    global _moved
    _frames.append(frame)
    moved, _moved = _moved, Event()
    moved.set()


def _stream(place: int) -> Iterator[bytes]:
    yield b": events\n\n"
    while True:
        if place == len(_frames):
            _moved.wait()
        frames, place = _frames[place:], len(_frames)
        yield b"".join(frames)
