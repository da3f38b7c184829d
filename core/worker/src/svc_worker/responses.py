"""Answers: ``start_response``, and the framing of bodies, in as few sends as can be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from svc_worker.bodies import RequestBody
from svc_worker.files import FileSegment
from svc_worker.settings import HttpSettings
from svc_worker.streams import Stream

__all__ = ["AnswerError", "Fields", "Response", "ResponseOwner", "learn_statuses"]

Fields: TypeAlias = Sequence[tuple[str, str]] | Mapping[str, str]
"""Header fields: pairs, as in PEP 3333, or values by name where no name comes twice."""

JOIN_BYTES = 32768
"""Up to this size a piece is copied behind the head; a larger one is sent from where it lies."""

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None]

_STATUS = re.compile(r"[2-5][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_LENGTH_DIGITS = 18
_LENGTH = re.compile(rf"[0-9]{{1,{_LENGTH_DIGITS}}}")
_KNOWN_NAMES = 1024
_PLAIN, _CONTENT_LENGTH, _DATE, _CONNECTION, _DROPPED = range(5)
_HOP_BY_HOP = frozenset(
    (
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
    )
)
_names: dict[str, tuple[int, str]] = {}
_statuses: dict[str, tuple[int, str]] = {}
# By the names of an answer's fields: the text between their values, with an empty place for the status line
# and for each of the values; and which of the values is the length (-1: none).
_forms: dict[tuple[str, ...], tuple[list[str], int]] = {}
_NO_FORM: tuple[list[str], int] = ([], -1)
_VALUES = slice(2, None, 2)
# Leaves printable ASCII as it is, and nothing else.
_PRINTABLE = bytes(byte if 0x20 <= byte < 0x7F else byte ^ 1 for byte in range(256))


class AnswerError(RuntimeError):
    """The application broke a rule of WSGI or HTTP: its fault, not the client's."""


class AnsweringServer(Protocol):
    """The worker, as answers see it."""

    date: str
    is_serving: bool


class ResponseOwner(Protocol):
    """The connection, as its answers see it."""

    stream: Stream
    settings: HttpSettings
    head_sent: bool
    keep_alive: bool
    is_http_1_0: bool

    @property
    def server(self) -> AnsweringServer:
        """Who answers."""


class Response:
    """The answer to one request; ``sent`` counts bytes of the body.

    ``status`` is the status line without the version, None before ``start``.
    """

    __slots__ = (
        "_bodiless",
        "_body",
        "_code",
        "_dated",
        "_declared",
        "_is_head",
        "_owner",
        "_text",
        "headers",
        "is_chunked",
        "sent",
        "status",
    )

    def __init__(self, owner: ResponseOwner, body: RequestBody, is_head: bool) -> None:
        self._owner = owner
        self._body = body
        self._is_head = is_head
        self.status: str | None = None
        self.headers: Fields = ()
        self.sent = 0
        self._declared: int | None = None
        self.is_chunked = False
        self._bodiless = is_head
        self._dated = False
        self._text: list[str] = []
        self._code = 0

    def start(
        self,
        status: str,
        headers: Fields,
        exc_info: ExceptionInfo | None = None,
    ) -> Callable[[bytes], None]:
        """WSGI's ``start_response``; takes a dictionary too, which spares both sides the pairs.

        Raises AnswerError when called twice without ``exc_info``, or with what HTTP can't carry, and the
        error of ``exc_info`` when the head was sent already.
        """
        if exc_info is not None:
            try:
                if self._owner.head_sent:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None
        elif self.status is not None:
            raise AnswerError("start_response was called twice.")
        code, line = _statuses.get(status) or _learn_status(status)
        self._code = code
        self._declared, self._dated = None, False
        self._text = self._fields_by_form(line, headers) or self._fields_one_by_one(line, headers)
        self._bodiless = self._is_head or code in (204, 304)
        self.status, self.headers = status, headers
        return self.write

    def _fields_by_form(self, line: str, headers: Fields) -> list[str]:
        """The head with all fields in one step; empty where each must be looked at by itself.

        Takes 15,800 instructions for eleven fields, one by one 35,800: 12% of a small GET.
        """
        if not headers:
            return []
        names: tuple[str, ...]
        values: Sequence[str]
        if isinstance(headers, dict):
            names, values = tuple(headers), list(headers.values())
        else:
            names, values = zip(*headers, strict=False)
        form, length_at = _forms.get(names) or _learn_form(names)
        content = "".join(values)
        if not (form and content.isascii()):
            return []
        encoded = content.encode()
        if encoded.translate(_PRINTABLE) != encoded:
            return []
        if length_at >= 0:
            length = values[length_at]
            if self._code == 204 or not 0 < len(length) <= _LENGTH_DIGITS or not length.isdigit():
                return []
            self._declared = int(length)
        text = form.copy()
        text[0] = line
        text[_VALUES] = values
        text.append("\r\n")
        return text

    def _fields_one_by_one(self, line: str, headers: Fields) -> list[str]:
        text = [line]
        pairs: Iterable[tuple[str, str]] = headers.items() if isinstance(headers, Mapping) else headers
        for name, value in pairs:
            kind, prefix = _names.get(name) or _learn(name)
            if not (value.isascii() and value.isprintable()) and _VALUE.fullmatch(value) is None:
                raise AnswerError(f"The field {name} has a value that HTTP can't carry.")
            if kind and not self._note(kind, value):
                continue
            text += (prefix, value, "\r\n")
        return text

    def write(self, piece: bytes) -> None:
        """Sends a piece of the body, with the head before the first one. Empty pieces send nothing.

        Raises ClientDisconnected, and AnswerError where ``start`` was not called or the piece is no bytes.
        """
        kind = type(piece)
        if kind is not bytes and not isinstance(piece, bytes | bytearray | memoryview | FileSegment):
            raise AnswerError(f"An answer consists of bytes, not of {kind.__name__}.")
        if not piece:
            return
        owner = self._owner
        if owner.head_sent:
            if not self._bodiless:
                self._send(b"", piece)
            return
        if self._declared is None and not self._bodiless:
            if owner.is_http_1_0:
                owner.keep_alive = False
            else:
                self.is_chunked = True
                self._text.append("Transfer-Encoding: chunked\r\n")
        head = self._head()
        if self._bodiless:
            owner.stream.send(head)
        else:
            self._send(head, piece)

    def write_only(self, piece: bytes) -> None:
        """Sends the only piece of a body, whose length need not be declared. Raises as ``write``."""
        if self._declared is None and not self._owner.head_sent and not self._bodiless and self.status:
            self._declare(len(piece))
        self.write(piece)

    def finish(self) -> None:
        """Ends the answer; ClientDisconnected where the client is gone.

        Raises AnswerError where the application gave less than it had declared, or never called ``start``.
        """
        owner = self._owner
        if not owner.head_sent:
            if self._declared and not self._bodiless:
                raise AnswerError("The answer has no body, though it declares one.")
            if self._declared is None and not self._bodiless:
                self._declare(0)
            owner.stream.send(self._head())
        elif self.is_chunked:
            owner.stream.send(b"0\r\n\r\n")
        elif self._declared is not None and self.sent < self._declared and not self._bodiless:
            raise AnswerError(f"The answer ended after {self.sent} of {self._declared} bytes.")

    def _send(self, head: bytes, piece: bytes | FileSegment) -> None:
        """Sends head and piece, no further than the declared length."""
        size = len(piece)
        if self._declared is not None and self.sent + size > self._declared:
            size = self._declared - self.sent
            piece = _cut(piece, size)
        self.sent += size
        stream = self._owner.stream
        ending = b""
        if self.is_chunked:
            head += b"%x\r\n" % size
            ending = b"\r\n"
        if isinstance(piece, FileSegment):
            if head:
                stream.send(head)
            if stream.send_file(piece.descriptor, piece.offset, size) < size:
                raise AnswerError("A file of the answer is shorter than it was.")
            if ending:
                stream.send(ending)
        elif size <= JOIN_BYTES:
            stream.send(b"".join((head, piece, ending)) if head or ending else piece)
        elif head or ending:
            stream.send_parts((head, piece, ending))
        else:
            stream.send(piece)

    def _head(self) -> bytes:
        """Returns the head; from here on the answer can't be taken back.

        Raises Refusal where the request's body can't be read, and the application answers with 500 or above.
        """
        if self.status is None:
            raise AnswerError("The application gave a body before it called start_response.")
        owner = self._owner
        server = owner.server
        text = self._text
        if not self._dated:
            text.append(server.date)
        body = self._body
        if not body.is_finished and _prevents_reuse(body, owner.settings.drain_bytes):
            if body.flaw is not None and self._code >= 500:
                raise body.flaw  # It is the client's fault, which a framework may take for its own.
            owner.keep_alive = False
        if not (server.is_serving and owner.settings.keepalive_s > 0):
            owner.keep_alive = False
        if not owner.keep_alive:
            text.append("Connection: close\r\n\r\n")
        elif owner.is_http_1_0:
            text.append("Connection: keep-alive\r\n\r\n")
        else:
            text.append("\r\n")
        owner.head_sent = True
        return "".join(text).encode("latin-1")

    def _declare(self, length: int) -> None:
        self._declared = length
        self._text.append(f"Content-Length: {length}\r\n")

    def _note(self, kind: int, value: str) -> bool:
        """Handles a field that concerns the connection; returns whether it is sent as it is."""
        if kind == _DATE:
            self._dated = True
            return True
        if kind == _CONNECTION:
            if "close" in value.lower():
                self._owner.keep_alive = False
            return False
        if kind == _CONTENT_LENGTH:
            if _LENGTH.fullmatch(value) is None or self._declared not in (None, int(value)):
                raise AnswerError("The Content-Length of the answer is not valid.")
            repeated = self._declared is not None
            self._declared = int(value)
            # A 204 must not have one (RFC 9110, 8.6).
            return not repeated and self._code != 204
        return False


def learn_statuses() -> None:
    """Learns the usual status lines ahead of their first use."""
    for status in HTTPStatus:
        if status >= 200:
            _learn_status(f"{status.value} {status.phrase}")


def _learn_status(status: object) -> tuple[int, str]:
    if not isinstance(status, str) or _STATUS.fullmatch(status) is None:
        raise AnswerError("The status of the answer is not valid.")
    entry = (int(status[:3]), f"HTTP/1.1 {status if len(status) > 3 else status + ' '}\r\n")
    if len(_statuses) < _KNOWN_NAMES:
        _statuses[status] = entry
    return entry


def _learn_form(names: tuple[str, ...]) -> tuple[list[str], int]:
    """Returns the form of an answer with these fields, as ``_forms`` keeps it.

    Fields that concern the connection, and a length that is stated twice, have no such form.
    """
    kinds = [(_names.get(name) or _learn(name))[0] for name in names]
    lengths = kinds.count(_CONTENT_LENGTH)
    form = _NO_FORM
    if lengths <= 1 and kinds.count(_PLAIN) + lengths == len(kinds):
        text = [""]
        for name in names:
            text += (("\r\n" if len(text) > 1 else "") + _learn(name)[1], "")
        form = (text, kinds.index(_CONTENT_LENGTH) if lengths else -1)
    if len(_forms) < _KNOWN_NAMES:
        _forms[names] = form
    return form


def _learn(name: object) -> tuple[int, str]:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise AnswerError("The name of a field of the answer is not valid.")
    lower = name.lower()
    kind = {"content-length": _CONTENT_LENGTH, "date": _DATE, "connection": _CONNECTION}.get(lower, _PLAIN)
    if lower in _HOP_BY_HOP:
        kind = _DROPPED
    entry = (kind, f"{name}: ")
    if len(_names) < _KNOWN_NAMES:
        _names[name] = entry
    return entry


def _prevents_reuse(body: RequestBody, drain_bytes: int) -> bool:
    return body.flaw is not None or body.awaits_continue or (body.left or 0) > drain_bytes


def _cut(piece: Any, size: int) -> Any:
    if isinstance(piece, FileSegment):
        return FileSegment(piece.descriptor, piece.offset, size)
    return piece[:size]
