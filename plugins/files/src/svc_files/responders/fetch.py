"""The responder of ``/files/fetch``: the contents of many files, or parts of them, in one JSON answer."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

import falcon
from msgspec import Raw, Struct

from svc.errors import Conflict, InvalidInput, NotFound, PayloadTooLarge, SvcError
from svc.plugin import (
    Entry,
    EntryKind,
    Hash,
    Operation,
    Path,
    context_of,
    format_path,
    pause,
    read_json,
    read_parameters,
    send_json_items,
)
from svc_files.access import Reading, body_path, require_count
from svc_files.json_child import Found
from svc_files.json_process import values_at
from svc_files.models import FetchBody, FetchItem, ReadQuery
from svc_files.parts import Budget, select_characters, select_lines
from svc_files.requests import MOST_OF_PATHS, reading_of, settings_of

__all__ = ["fetch"]

_JSON_COST = 8
"""A byte of JSON that is decoded counts as so many that are only read."""


class _Found(Struct):
    """An item with what stands at its path, or with the error that stands in for it."""

    item: FetchItem
    path: Path
    entry: Entry | None = None
    error: SvcError | None = None


def fetch(req: falcon.Request, resp: falcon.Response) -> None:
    """Answers in the order asked; what is missing shows as an error in its place."""
    call = context_of(req)
    settings = settings_of(call)
    body = read_json(req, FetchBody, MOST_OF_PATHS)
    wanted = [FetchItem(path=path) for path in body.paths] + body.items
    require_count(len(wanted), min(settings.fetch_paths, settings.maximum_batch), "paths")
    if not wanted:
        raise InvalidInput("A fetch names paths or items.", field="paths")
    for item in wanted:
        _check_part(item)
    reading = reading_of(call, read_parameters(req, ReadQuery))
    hold = reading.hold()
    found = [_find(reading, item) for item in wanted]
    _refuse_stale(found)
    budget = Budget(settings.fetch_bytes, settings.fetch_scan_bytes)
    budget.expect(sum(one.entry.size for one in found if one.entry is not None and _is_whole(one.item)))
    documents = _Documents(reading, found, budget, settings.maximum_json)
    answers = [_answer(reading, one, budget, documents) for one in found]
    version = reading.version.root.hex()
    resp.set_header("X-Svc-Version", version)
    send_json_items(resp, "items", answers, lambda: {"version": version}, hold=hold)


def _is_whole(item: FetchItem) -> bool:
    return item.lines is None and item.byte_range is None and item.chars is None and item.json_pointer is None


def _check_part(item: FetchItem) -> None:
    parts = [
        part for part in (item.lines, item.byte_range, item.chars, item.json_pointer) if part is not None
    ]
    if len(parts) > 1:
        raise InvalidInput("An item has at most one of lines, bytes, chars and json_pointer.", path=item.path)
    for name, bounds, lowest in (
        ("lines", item.lines, 1),
        ("bytes", item.byte_range, 0),
        ("chars", item.chars, 0),
    ):
        if bounds is None:
            continue
        first, last = bounds
        if first < lowest or (last is not None and last < first):
            raise InvalidInput(f"{name} is a pair of numbers in order, from {lowest} on.", field=name)


def _find(reading: Reading, item: FetchItem) -> _Found:
    try:
        path = body_path(item.path)
    except NotFound as error:
        return _Found(item, (), error=error)
    try:
        _, entry = reading.find(path, Operation.READ)
    except SvcError as error:
        return _Found(item, path, error=error)
    if entry.kind is not EntryKind.FILE:
        return _Found(item, path, error=InvalidInput("A directory is at this path."))
    return _Found(item, path, entry)


def _refuse_stale(found: list[_Found]) -> None:
    stale = []
    for one in found:
        expected = one.item.if_content_hash
        if expected is None:
            continue
        present = one.entry.hash.hex() if one.entry is not None else None
        if present != expected.strip('"').lower():
            stale.append({"path": one.item.path, "content_hash": present})
    if stale:
        raise Conflict("Files have changed since their content hash was read.", stale=stale)


class _Documents:
    """The JSON documents of one request: each is read and decoded once, for all pointers into it."""

    def __init__(self, reading: Reading, found: list[_Found], budget: Budget, limit: int) -> None:
        self._version = reading.version
        self._budget = budget
        self._limit = limit
        self._pointers: dict[Hash, list[str]] = {}
        self._values: dict[Hash, dict[str, Found]] = {}
        for one in found:
            if one.entry is not None and one.item.json_pointer is not None:
                self._pointers.setdefault(one.entry.hash, []).append(one.item.json_pointer)

    def value(self, entry: Entry, pointer: str) -> Raw:
        """Returns what stands at a pointer of a file, as JSON."""
        if entry.size > self._limit:
            raise InvalidInput("The file is too large to be read as JSON.")
        values = self._values.get(entry.hash)
        if values is None:
            self._budget.scan(entry.size * _JSON_COST)
            pointers = list(dict.fromkeys(self._pointers[entry.hash]))
            try:
                read = partial(self._version.read_all, entry)
                found = values_at(entry.size, read, pointers, self._budget.left)
            except InvalidInput as error:
                found = [Found(error=error.message)] * len(pointers)
            if found is None:
                raise self._budget.exceeded()
            values = self._values[entry.hash] = dict(zip(pointers, found, strict=True))
        one = values[pointer]
        if one.error:
            raise (NotFound if one.is_missing else InvalidInput)(one.error, field="json_pointer")
        self._budget.take(len(bytes(one.value)))
        return one.value


def _answer(reading: Reading, one: _Found, budget: Budget, documents: _Documents) -> dict[str, Any]:
    if one.entry is None:
        error = one.error or NotFound("There is nothing at this path.")
        return {"path": one.item.path, "error": error.message, "code": error.code}
    pause()
    answer: dict[str, Any] = {
        "path": format_path(one.path),
        "size": one.entry.size,
        "content_type": one.entry.content_type,
        "content_hash": one.entry.hash.hex(),
        "created_at": one.entry.created_ms,
        "updated_at": one.entry.updated_ms,
    }
    try:
        answer.update(_part(reading, one.item, one.entry, budget, documents))
    except PayloadTooLarge:
        raise
    except (InvalidInput, NotFound) as error:
        answer.update(error=error.message, code=error.code)
    return answer


def _part(
    reading: Reading, item: FetchItem, entry: Entry, budget: Budget, documents: _Documents
) -> dict[str, Any]:
    version = reading.version
    if item.json_pointer is not None:
        return {"json_pointer": item.json_pointer, "value": documents.value(entry, item.json_pointer)}
    if item.lines is not None:
        content, last = select_lines(version.read(entry), *item.lines, budget)
        return {"lines": [item.lines[0], last], **_encoded(content)}
    if item.chars is not None:
        text = select_characters(version.read(entry), *item.chars, budget)
        return {"chars": [item.chars[0], item.chars[0] + len(text)], "encoding": "utf-8", "content": text}
    if item.byte_range is not None:
        start, end = item.byte_range
        length = max(0, (entry.size if end is None else min(end, entry.size)) - start)
        budget.take(length)
        content = b"".join(version.read(entry, start, length)) if length else b""
        return {"bytes": [start, start + len(content)], **_encoded(content)}
    budget.take(entry.size)
    return _encoded(version.read_all(entry))


def _encoded(content: bytes) -> dict[str, Any]:
    """A content as JSON can hold it: UTF-8 text as it is, anything else in base64."""
    try:
        return {"encoding": "utf-8", "content": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"encoding": "base64", "content": base64.b64encode(content).decode("ascii")}
