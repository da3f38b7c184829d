"""A child process that parses files for a pool, one after another, and owns nothing else.

It is started anew, never forked, with the folders to import from as its arguments and an empty environment.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import resource
import select
import signal
import sys
import threading
from typing import Any

import msgspec

from svc_query.parsing.documents import encode_in_part
from svc_query.parsing.protocol import (
    ANSWER,
    DOCUMENT,
    FAILURE,
    FRAME,
    LAST_FAILURE,
    READY,
    Request,
    Settings,
)
from svc_query.parsing.results import describe_error
from svc_query.parsing.sandbox import apply_limits, die_with_parent, restrict

__all__ = ["main"]

_GRACE_SECONDS = 2.0
"""The pool's own clock comes first; the child's ends it when the pool is gone."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


class _Ended(Exception):
    """The pool is gone, or wants no more."""


def main(parent: int) -> None:
    """Serves one pool until that is gone. Called in a new process."""
    die_with_parent(parent)
    child = _Child(*_private_pipes(), _folders())
    os.chdir("/")
    with contextlib.suppress(_Ended, BrokenPipeError):
        child.serve()
    os._exit(0)


def _private_pipes() -> tuple[int, int]:
    """Keeps the pipes of the pool under other numbers: a library that prints must not speak for the child."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number not in (incoming, outgoing):
            with contextlib.suppress(OSError):
                os.close(number)
    return incoming, outgoing


def _folders() -> list[str]:
    """Where Python imports from. The directory that the server was started in is there with ``python -m``.

    It may hold the database, so it counts only if something can be imported from it.
    """
    folders = [*filter(None, sys.path), sys.prefix, sys.base_prefix]
    with contextlib.suppress(OSError):
        started_in = os.getcwd()
        if not any(_is_importable(entry) for entry in os.scandir(started_in)):
            folders = [folder for folder in folders if os.path.realpath(folder) != started_in]
    return folders


def _is_importable(entry: os.DirEntry[str]) -> bool:
    if entry.name.endswith((".py", ".so", ".dist-info", ".egg-info")):
        return True
    return os.path.exists(os.path.join(entry.path, "__init__.py"))


class _Child:
    def __init__(self, incoming: int, outgoing: int, folders: list[str]) -> None:
        self._folders = folders
        self._incoming = incoming
        self._outgoing = outgoing
        self._statistics = os.open("/proc/self/statm", os.O_RDONLY)
        self._settings = msgspec.msgpack.decode(self._frame(), type=Settings)
        self._parsers: dict[tuple[str, str], Any] = {}
        self._token = 0

    def serve(self) -> None:
        settings = self._settings
        apply_limits(settings.memory)
        granted = {}
        if settings.restrict:
            granted = restrict(self._folders)
        self._answer(READY, msgspec.json.encode(granted))
        before = self._memory()
        for count in range(1, settings.parses + 1):
            kind, payload = self._parse_one()
            grown = self._memory() - before > settings.memory // 4
            last = count == settings.parses or grown or threading.active_count() > 1 or kind.islower()
            self._answer(kind.lower() if last else kind, payload)
            if last:
                return

    def _parse_one(self) -> tuple[bytes, bytes]:
        if not select.select([self._incoming], [], [], self._settings.idle_seconds)[0]:
            raise _Ended
        request = msgspec.msgpack.decode(self._frame(), type=Request)
        self._token = request.token
        try:
            parser = self._load(request.module, request.qualified_name)
        except BaseException as error:  # noqa: BLE001
            text = describe_error(request.qualified_name, error).replace(
                "can't read it", "can't be loaded", 1
            )
            return LAST_FAILURE, text.encode("utf-8", "replace")
        self._answer(READY, b"")
        try:
            content = self._content()
        except MemoryError as error:
            return LAST_FAILURE, describe_error(parser.name, error, self._settings.memory).encode()
        self._set_alarms(self._settings.seconds)
        try:
            return self._document(parser, content, request)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _document(self, parser: Any, content: io.BytesIO, request: Request) -> tuple[bytes, bytes]:
        from svc_query.api import ParserInput

        source = ParserInput(request.name, request.content_type, request.size, request.encoding)
        try:
            document = parser.parse(content, source)
            encoded = encode_in_part(document, self._settings.output)
            notes = "\t".join(" ".join(note.split()) for note in (encoded.guess, encoded.part))
            return DOCUMENT, notes.encode("utf-8", "replace") + b"\n" + encoded.document
        except BaseException as error:  # noqa: BLE001
            text = describe_error(parser.name, error, self._settings.memory).encode("utf-8", "replace")
            # After such an end nobody knows what state the libraries are in.
            return (FAILURE if isinstance(error, Exception) and not _exhausted(error) else LAST_FAILURE), text

    def _load(self, module: str, qualified_name: str) -> Any:
        key = module, qualified_name
        if key not in self._parsers:
            found: Any = functools.reduce(getattr, qualified_name.split("."), importlib.import_module(module))
            self._parsers[key] = found()
        return self._parsers[key]

    def _set_alarms(self, seconds: float) -> None:
        """Ends the process by the kernel, when neither the pool nor Python can."""
        signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_SECONDS)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = int(usage.ru_utime + usage.ru_stime + seconds + _GRACE_SECONDS) + 1
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        if hard == resource.RLIM_INFINITY or used < hard:
            resource.setrlimit(resource.RLIMIT_CPU, (used, hard))

    def _memory(self) -> int:
        return int(os.pread(self._statistics, 100, 0).split()[1]) * _PAGE

    def _content(self) -> io.BytesIO:
        content = io.BytesIO()
        while frame := self._frame():
            content.write(frame)
        content.seek(0)
        return content

    def _frame(self) -> bytes:
        (length,) = FRAME.unpack(self._read(FRAME.size))
        return self._read(length)

    def _read(self, length: int) -> bytes:
        parts = []
        while length:
            part = os.read(self._incoming, min(length, 1 << 20))
            if not part:
                raise _Ended
            parts.append(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _answer(self, kind: bytes, payload: bytes) -> None:
        rest = memoryview(ANSWER.pack(kind, self._token, len(payload)) + payload)
        while rest:
            rest = rest[os.write(self._outgoing, rest) :]


def _exhausted(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, RecursionError))
