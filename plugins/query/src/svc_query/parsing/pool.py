"""Child processes that parse files: as many as allowed, reused, and replaced when anything went wrong."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Any

from svc.plugin import native, run_blocking
from svc_query.api import Parser, ParserInput
from svc_query.configuration import QueryConfiguration
from svc_query.parsing.documents import decode_document
from svc_query.parsing.process import ChildGone, ChildProcess, OutOfTime
from svc_query.parsing.protocol import DOCUMENT, Request, Settings
from svc_query.parsing.results import ParseResult, mebibytes, readable

__all__ = ["LEAST_MEMORY", "ParserPool"]

LEAST_MEMORY = 160 << 20
"""Bytes of address space below which Python and a library would not even start."""

_READ_BYTES = 256 * 1024
_FRAME_ROOM = 4_096
_LONGEST_GUESS = 40


class _TooLong(Exception):
    """The content of a file is longer than it may be."""


class ParserPool:
    """Parses files in child processes with limits.

    A child is started when a file needs one, at most ``parsers_at_once``; it takes one file after another. It
    ends after ``parses`` of them, when its memory has grown, after ``idle_seconds`` without work, with
    ``close``, and with the process that started it. What happens in it costs the file at hand, nothing else.

    Safe in native threads and in greenlets; a process that is forked begins anew.
    """

    def __init__(
        self,
        configuration: QueryConfiguration,
        *,
        idle_seconds: float = 20.0,
        parses: int = 500,
    ) -> None:
        """Makes a pool; starts nothing yet."""
        self._configuration = configuration
        self._settings = Settings(
            seconds=configuration.parse_seconds,
            memory=max(configuration.parse_memory, LEAST_MEMORY),
            output=configuration.parse_output,
            idle_seconds=idle_seconds,
            parses=parses,
        )
        self._lock = native("_thread", "allocate_lock")()
        self._idle: deque[tuple[ChildProcess, float]] = deque()
        self._busy: list[ChildProcess] = []
        self._forget()

    def parse(
        self, parser: Parser, content: Iterable[bytes] | bytes | FilePath, source: ParserInput
    ) -> ParseResult:
        """Makes a document of a file in a child process. Blocks: for a free child, then for the parse.

        Raises what ``content`` raises, or reading the file. All else is a failure in the result.
        """
        return run_blocking(self._parse, parser, content, source)

    def trim(self) -> None:
        """Ends the children that have been idle for long, and forgets those that ended by themselves."""
        for child in self._expired():
            child.end()

    def close(self) -> None:
        """Ends all children; a parse at hand fails, as transient, and so does each further one. Blocks."""
        with self._lock:
            self._look_for_fork()
            self._closed = True
            idle, self._idle = list(self._idle), deque()
            busy = list(self._busy)
            self._wake()
        for child in busy:
            child.kill()
        for child, _ in idle:
            child.end()

    @property
    def children(self) -> tuple[int, ...]:
        """Process ids of the children, those that are idle among them."""
        with self._lock:
            self._look_for_fork()
            return tuple(sorted([child.pid for child, _ in self._idle] + [child.pid for child in self._busy]))

    # -- one parse -----------------------------------------------------------------------------------

    def _parse(
        self, parser: Parser, content: Iterable[bytes] | bytes | FilePath, source: ParserInput
    ) -> ParseResult:
        limit = self._configuration.parse_input
        too_long = ParseResult(failure=f"It is larger than {mebibytes(limit)}, so it is not parsed.")
        if source.size > limit:
            return too_long
        kind = type(parser)
        request = Request(
            kind.__module__,
            kind.__qualname__,
            source.name,
            source.content_type,
            source.size,
            token=secrets.randbits(64),
            encoding=source.encoding,
        )
        if not self._take_place():
            return _closed()
        child: ChildProcess | None = None
        try:
            try:
                child, refusal = self._begin(request)
            except (OSError, ChildGone, OutOfTime) as error:
                return self._not_started(parser, error)
            if refusal is not None:
                return ParseResult(failure=readable(refusal.decode("utf-8", "replace")))
            return self._finish(child, parser, _limited(content, limit))
        except _TooLong:
            return too_long
        finally:
            self._give_back(child)

    def _finish(self, child: ChildProcess, parser: Parser, content: Iterable[bytes]) -> ParseResult:
        """Sends the file and takes the answer; the child is left alive only when it may take another file."""
        settings = self._settings
        keep = False
        try:
            with contextlib.suppress(ChildGone):  # It may have answered before it ended.
                child.send(content)
            kind, payload = child.receive(settings.seconds, settings.output + _FRAME_ROOM)
            keep = kind.isupper()
            if kind.upper() != DOCUMENT:
                return ParseResult(failure=readable(payload.decode("utf-8", "replace")))
            notes, _, document = payload.partition(b"\n")
            guess, _, part = notes.decode("utf-8", "replace").partition("\t")
            return ParseResult(
                decode_document(document, settings.output),
                part=readable(part) or None,
                guess=readable(guess, _LONGEST_GUESS) or None,
            )
        except OutOfTime:
            return ParseResult(
                failure=f"The parser {parser.name} took longer than {settings.seconds:g} seconds.", late=True
            )
        except ChildGone as gone:
            if self._closed:
                return _closed()
            return ParseResult(failure=f"The parser {parser.name} {gone.words}.")
        except ValueError as error:
            keep = False
            return ParseResult(failure=f"The parser {parser.name} gave no document: {readable(str(error))}.")
        finally:
            if not keep:
                child.end()

    def _begin(self, request: Request) -> tuple[ChildProcess, bytes | None]:
        """Returns a child that is ready for the bytes of a file, or why its parser can't be loaded."""
        while (child := self._reuse()) is not None:
            try:
                return child, self._checked(child, child.begin(request))
            except (ChildGone, OutOfTime):
                child.end()  # It was about to end by itself: the next one is fresh.
                self._dismiss(child)
        child = ChildProcess(self._settings)
        self._employ(child)
        try:
            return child, self._checked(child, child.begin(request))
        except BaseException:
            child.end()
            self._dismiss(child)
            raise

    @staticmethod
    def _checked(child: ChildProcess, refusal: bytes | None) -> bytes | None:
        if refusal is not None:
            child.end()
        return refusal

    def _not_started(self, parser: Parser, error: Exception) -> ParseResult:
        if self._closed:
            return _closed()
        words = {OutOfTime: "it was not ready in time", ChildGone: f"it {error}"}.get(type(error), str(error))
        return ParseResult(
            failure=readable(f"No process could be started for the parser {parser.name}: {words}."),
            transient=True,
        )

    # -- who has a child -----------------------------------------------------------------------------

    def _forget(self) -> None:
        self._process = os.getpid()
        self._closed = False
        self._places = self._configuration.parsers_at_once
        self._waiting: deque[Any] = deque()
        self._idle = deque()
        self._busy = []

    def _look_for_fork(self) -> None:
        """Under the lock: children belong to the process that started them."""
        if self._process != os.getpid():
            for child in [*(child for child, _ in self._idle), *self._busy]:
                child.abandon()
            self._forget()

    def _take_place(self) -> bool:
        """Waits until fewer than all children work; says whether the pool is open. In the order of coming."""
        with self._lock:
            self._look_for_fork()
            if self._closed:
                return False
            if self._places > 0:
                self._places -= 1
                return True
            turn = native("_thread", "allocate_lock")()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()  # Whoever wakes this thread hands it the place.
        return not self._closed

    def _give_back(self, child: ChildProcess | None) -> None:
        now = time.monotonic()
        surplus = None
        with self._lock:
            if child is not None and child in self._busy:
                self._busy.remove(child)
                if not child.ended:
                    if self._closed:
                        surplus = child
                    else:
                        self._idle.append((child, now))
            if self._closed:
                self._wake()
            elif self._waiting:
                self._waiting.popleft().release()
            else:
                self._places += 1
        if surplus is not None:
            surplus.end()
        self.trim()

    def _wake(self) -> None:
        while self._waiting:
            self._waiting.popleft().release()

    def _reuse(self) -> ChildProcess | None:
        """The child that worked last, so that the others become idle."""
        self.trim()
        with self._lock:
            if not self._idle:
                return None
            child, _ = self._idle.pop()
            self._busy.append(child)
            return child

    def _employ(self, child: ChildProcess) -> None:
        with self._lock:
            self._busy.append(child)
            closed = self._closed
        if closed:
            child.kill()

    def _dismiss(self, child: ChildProcess) -> None:
        with self._lock:
            if child in self._busy:
                self._busy.remove(child)

    def _expired(self) -> list[ChildProcess]:
        oldest = time.monotonic() - self._settings.idle_seconds
        with self._lock:
            self._look_for_fork()
            found = [child for child, since in self._idle if since < oldest or child.has_ended]
            self._idle = deque(item for item in self._idle if item[0] not in found)
        return found


def _closed() -> ParseResult:
    return ParseResult(failure="The process that parses files was stopped.", transient=True)


def _limited(content: Iterable[bytes] | bytes | FilePath, limit: int) -> Iterator[bytes]:
    """The parts of a file, as long as they are no more than a file may have."""
    left = limit
    for part in _parts(content):
        left -= len(part)
        if left < 0:
            raise _TooLong
        yield part


def _parts(content: Iterable[bytes] | bytes | FilePath) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, FilePath):
        with content.open("rb") as file:
            while part := file.read(_READ_BYTES):
                yield part
    else:
        yield from content
