"""Answers: JSON, streams, and contents with everything that HTTP knows about ranges and conditions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import falcon

from svc.database import Hold, pause
from svc.media_types import split_content_encoding
from svc.operations.json import JSON_MEDIA_TYPE, encode_json, json_body
from svc.pipeline.conditions import format_http_date, not_modified, quote_etag
from svc.pipeline.framework import LeanResponse
from svc.pipeline.ranges import MultipartRanges, select_range

__all__ = ["CONTENT_POLICY", "send_content", "send_json", "send_json_items", "send_stream", "set_fields"]

CONTENT_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The ``Content-Security-Policy`` of an answer whose route says nothing else: whatever it is taken for, it
loads and runs nothing and stands in no frame."""

LONGEST_HOLD_SECONDS = 3600.0
"""For so long at most an answer keeps what it reads from being collected."""

_FLUSH_BYTES = 65536
_SMALL_BYTES = 65536
"""Up to here a content is read before it is sent: one piece, and an error while reading is an answer."""


def set_fields(resp: falcon.Response, fields: Mapping[str, str]) -> None:
    """Sets header fields in one step, without the checks and conversions that Falcon makes for each.

    Args:
        resp: the response.
        fields: by name in lower case; values are visible ASCII. Never ``set-cookie``.
    """
    own: LeanResponse = resp  # type: ignore[assignment]  # the pipeline's own
    present = own.header_fields
    if len(fields) <= len(present):
        present.update(fields)
        return
    # To copy a dictionary costs a fraction of what its entries cost one by one.
    own.header_fields = headers = {**fields}
    for name, value in present.items():
        if name not in headers:
            headers[name] = value


def send_json(resp: falcon.Response, value: Any, status: int = 200) -> None:
    """Answers with ``value`` as JSON, which ends with a newline."""
    resp.status = status
    resp.content_type = JSON_MEDIA_TYPE
    resp.data = json_body(value)


class _Held(Iterator[bytes]):
    """Pieces that are read of a version, which is held until they are sent, or nobody wants them any more.

    Or for an hour: a client that takes a few bytes a second would keep collections from giving space back for
    days. It goes on to be sent what a later collection does not destroy.
    """

    def __init__(self, pieces: Iterator[bytes], hold: Hold) -> None:
        self._pieces = pieces
        self._hold = hold
        self._held_until = time.monotonic() + LONGEST_HOLD_SECONDS

    def __next__(self) -> bytes:
        if time.monotonic() > self._held_until:
            self._hold.release()
        try:
            return next(self._pieces)
        except BaseException:  # the end, or an error
            self._hold.release()
            raise

    def close(self) -> None:
        try:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                close()
        finally:
            self._hold.release()


def send_stream(
    resp: falcon.Response,
    pieces: Iterator[bytes],
    length: int | None,
    *,
    content_type: str | None = None,
    hold: Hold | None = None,
) -> None:
    """Answers with a stream; memory holds one piece at a time.

    An error that ``pieces`` raises before its first piece becomes an ordinary error answer. Later the
    connection is cut, so that no client takes a part for the whole.

    Args:
        resp: the response.
        pieces: yields the body; pieces of 64 KiB to 1 MiB travel best. Its ``close`` is called when the
            client leaves early.
        length: bytes of the body; None when it isn't known (the answer is then chunked).
        content_type: media type; None keeps the one that is set.
        hold: keeps what is read from being collected (``Database.hold_version``); released at the end.
    """
    if content_type is not None:
        resp.content_type = content_type
    if length is not None:
        resp.content_length = length
    resp.stream = pieces if hold is None else _Held(pieces, hold)


def send_json_items(
    resp: falcon.Response,
    head: str,
    items: Iterable[Any],
    tail: Callable[[], dict[str, Any]],
    *,
    hold: Hold | None = None,
) -> None:
    """Answers with a JSON object whose one array is streamed: ``{"<head>": [...], <tail>}``.

    Args:
        resp: the response.
        head: name of the member that holds the array.
        items: what the array holds; encoded and sent as they come.
        tail: called at the end; gives the members that follow the array.
        hold: as of ``send_stream``.
    """
    send_stream(resp, _json_items(head, items, tail), None, content_type=JSON_MEDIA_TYPE, hold=hold)


def send_content(
    req: falcon.Request,
    resp: falcon.Response,
    *,
    size: int,
    etag: str | None,
    updated_ms: int | None,
    content_type: str,
    read: Callable[[int, int], Iterator[bytes]],
    read_all: Callable[[], bytes] | None = None,
    hold: Callable[[], Hold] | None = None,
) -> None:
    """Answers a GET or HEAD of a content: 200, 206, 304, 412 or 416, with the header fields of each.

    Sets ``ETag`` and ``Last-Modified`` unless the caller has, ``Accept-Ranges``, ``Content-Type``,
    ``Content-Length`` and, for a part, ``Content-Range``. Several ranges are answered as
    ``multipart/byteranges``.

    Args:
        req: the request.
        resp: the response; further header fields may be set on it before.
        size: bytes of the content.
        etag: its opaque entity tag (no quotes), or None.
        updated_ms: its last modification in Unix milliseconds, or None.
        content_type: its media type; the codings that it was stored in become ``Content-Encoding``.
        read: gives the bytes of a part, by start and length.
        read_all: gives all bytes; called instead, where it is given, for contents that are sent in one piece.
        hold: keeps what is read from being collected, as of ``send_stream``; called for what is streamed.

    Raises:
        PreconditionFailed: ``If-Match`` or ``If-Unmodified-Since`` does not hold.
        RangeNotSatisfiable: no byte of the range exists.
        InvalidInput: a malformed list of entity tags.
    """
    unchanged = not_modified(req, etag, updated_ms)
    ranges = None if unchanged else select_range(req, size, etag, updated_ms)
    own: LeanResponse = resp  # type: ignore[assignment]  # the pipeline's own
    fields = own.header_fields
    fields["accept-ranges"] = "bytes"
    if etag is not None and "etag" not in fields:
        fields["etag"] = quote_etag(etag)
    if updated_ms is not None and "last-modified" not in fields:
        fields["last-modified"] = format_http_date(updated_ms)
    if unchanged:
        resp.status = 304
        return
    content_type, codings = split_content_encoding(_field_value(content_type))
    fields["content-type"] = content_type
    if codings is not None:
        fields["content-encoding"] = fields["x-svc-content-encoding"] = codings
    if ranges is None:
        if req.method == "HEAD" or size == 0:
            resp.content_length = size
        elif size <= _SMALL_BYTES:
            resp.data = b"".join(read(0, size)) if read_all is None else read_all()
        else:
            held = None if hold is None else hold()
            # Its first piece is work enough to wait for its turn among others of the kind.
            pause()
            send_stream(resp, read(0, size), size, hold=held)
        return
    resp.status = 206
    held = None
    if size > _SMALL_BYTES:
        held = None if hold is None else hold()
        pause()
    if len(ranges) == 1:
        resp.set_header("Content-Range", ranges[0].content_range(size))
        send_stream(resp, read(ranges[0].start, ranges[0].length), ranges[0].length, hold=held)
        return
    multipart = MultipartRanges(ranges, size, content_type)
    pieces = multipart.pieces(read)
    send_stream(resp, pieces, multipart.length, content_type=multipart.media_type, hold=held)


def _json_items(head: str, items: Iterable[Any], tail: Callable[[], dict[str, Any]]) -> Iterator[bytes]:
    buffer = bytearray(b"{" + encode_json(head) + b":[")
    separator = b""
    for item in items:
        buffer += separator
        buffer += encode_json(item)
        separator = b","
        if len(buffer) >= _FLUSH_BYTES:
            yield bytes(buffer)
            buffer.clear()
    members = json_body(tail())
    buffer += b"]" + (b"," + members[1:] if len(members) > len(b"{}\n") else members[1:])
    yield bytes(buffer)


def _field_value(value: str) -> str:
    """A stored media type as a header field may carry it: whoever stored it may have chosen anything."""
    if value.isascii() and value.isprintable():
        return value
    return "application/octet-stream"
