"""The bytes of a node: encoding, decoding, and the columns of new entries.

A payload flows in, a node flows out, and back. Everything that decoding accepts is safe to walk:
what is malformed raises ``CorruptRecord`` here and nowhere later.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt
from struct import pack
from typing import Any, NoReturn

import cbor2

from svc.errors import CorruptRecord, InvalidInput, InvalidPath
from svc.hashing import HASH_SIZE, Hash
from svc.paths import MAXIMUM_PATH_BYTES, MAXIMUM_SEGMENT_BYTES
from svc.tree.entry import Entry, EntryKind
from svc.tree.node import MAXIMUM_ENTRIES, MAXIMUM_NUMBER, Columns, Inner, Leaf, Node, totals_of

__all__ = [
    "FORMAT",
    "MAXIMUM_LEVEL",
    "MAXIMUM_NODE_BYTES",
    "decode_node",
    "empty_payload",
    "encode_columns",
    "leaf_columns",
]

FORMAT = 1
MAXIMUM_LEVEL = 63
MAXIMUM_CONTENT_TYPE = 255
MAXIMUM_NODE_BYTES = 2 << 20
"""More than 64 entries of the longest names, targets and content types take."""

_FILE, _DIRECTORY, _SYMLINK = int(EntryKind.FILE), int(EntryKind.DIRECTORY), int(EntryKind.SYMLINK)
_NO_NAMES = frozenset(("", ".", ".."))
_KIND_BYTES = bytes((_FILE, _DIRECTORY, _SYMLINK))
_LEAF_ITEMS = 11
_INNER_ITEMS = 5


def leaf_columns(items: Sequence[tuple[str, Entry]]) -> Columns:
    """Returns the columns of some entries, which are sorted by name already.

    Raises:
        InvalidPath: a name that no path can hold.
        InvalidInput: an entry that does not fit its kind, or a number out of range.
    """
    names = [name for name, _ in items]
    joined = "".join(names)
    if (
        "/" in joined
        or "\0" in joined
        or not _NO_NAMES.isdisjoint(names)
        or max(map(len, names), default=0) > MAXIMUM_SEGMENT_BYTES
    ):
        raise InvalidPath("An entry's name may not be empty, '.' or '..', too long, nor hold '/' or NUL.")
    entries = [entry for _, entry in items]
    types = [entry.content_type for entry in entries]
    if any(text is not None and len(text) > MAXIMUM_CONTENT_TYPE for text in set(types)):
        raise InvalidInput("A content type is too long.", limit=MAXIMUM_CONTENT_TYPE)
    extras = [
        None
        if entry.record is None and entry.target is None and entry.totals is None and entry.kind == _FILE
        else _extra_of(entry)
        for entry in entries
    ]
    hashes = [entry.hash for entry in entries]
    if hashes and set(map(len, hashes)) != {HASH_SIZE}:
        raise InvalidInput("An entry's hash must have 32 bytes.")
    kinds = bytes([entry.kind for entry in entries])
    return names, kinds, b"".join(hashes), _pack(entries), types, extras


def encode_columns(level: int, columns: Columns) -> bytes:
    """Returns the payload of a node: the only byte string for its content.

    Raises:
        InvalidPath: a name that is not valid Unicode.
        InvalidInput: the node is over ``MAXIMUM_NODE_BYTES``.
    """
    document = [FORMAT, level, *columns] if level else _leaf_document(columns)
    try:
        payload = cbor2.dumps(document)
    except (cbor2.CBOREncodeError, UnicodeEncodeError):
        raise InvalidPath("A name, target or content type must be valid Unicode text.") from None
    if len(payload) > MAXIMUM_NODE_BYTES:
        raise InvalidInput("The names, targets and content types of a directory are too long.")
    return payload


def empty_payload() -> bytes:
    """Returns the payload of the root of a directory that holds nothing."""
    return encode_columns(0, leaf_columns(()))


def decode_node(payload: bytes) -> Node:
    """Returns the node that a payload holds.

    Raises:
        CorruptRecord: the payload is not that of a node.
    """
    if len(payload) > MAXIMUM_NODE_BYTES:
        _corrupt("it is too long")
    try:
        document = cbor2.loads(
            payload,
            max_depth=4,
            allow_indefinite=False,
            allow_duplicate_keys=False,
            semantic_decoders=_NO_TAGS,
        )
    except (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise CorruptRecord("A directory node is not valid CBOR.") from error
    if (
        type(document) is not list
        or len(document) < 2
        or type(document[0]) is not int
        or document[0] != FORMAT
    ):
        _corrupt("it is of another format")
    level = document[1]
    if type(level) is not int or not 0 <= level <= MAXIMUM_LEVEL:
        _corrupt("its level is out of range")
    return _decode_inner(level, document) if level else _decode_leaf(document)


def _decode_leaf(document: list[Any]) -> Leaf:
    if len(document) != _LEAF_ITEMS:
        _corrupt("its items are not those of a leaf")
    _, _, names, kinds, hashes, numbers, unique, index, records, targets, totals = document
    count = _check_names(names, 0)
    _check_bytes(kinds, count)
    _check_bytes(hashes, count * 32)
    _check_bytes(numbers, count * 24)
    _check_bytes(index, count)
    if not numbers[7::8].isascii():
        _corrupt("a number is out of range")
    if kinds.translate(None, _KIND_BYTES):
        _corrupt("an entry is of no known kind")
    types = _decode_types(unique, index, kinds)
    if type(records) is not dict or type(targets) is not dict or type(totals) is not dict:
        _corrupt("a sparse column is not a map")
    extras: list[tuple[Any, ...] | None] = [None] * count
    if records or targets or totals or kinds.count(_FILE) != count:
        _decode_extras(extras, kinds, records, targets, totals)
        _check_empty_directories(extras, numbers)
    return Leaf((names, kinds, hashes, numbers, types, extras))


def _decode_types(unique: Any, index: bytes, kinds: bytes) -> list[str | None]:
    if (
        type(unique) is not list
        or not set(map(type, unique)) <= {str}
        or not all(map(lt, unique, unique[1:]))
    ):
        _corrupt("its content types are not sorted text")
    table = [None, *unique]
    if set(index) - {0} != set(range(1, len(table))):
        _corrupt("its content types do not fit their index")
    if unique and any(kind != _FILE and number for kind, number in zip(kinds, index, strict=True)):
        _corrupt("what is not a file has a content type")
    return [table[number] for number in index]


def _decode_extras(
    extras: list[tuple[Any, ...] | None],
    kinds: bytes,
    records: dict[Any, Any],
    targets: dict[Any, Any],
    totals: dict[Any, Any],
) -> None:
    for at, kind in enumerate(kinds):
        if kind == _SYMLINK:
            target = targets.get(at)
            if type(target) is not str:
                _corrupt("a symbolic link has no target")
            extras[at] = (None, target, None)
        elif kind == _DIRECTORY:
            counts = totals.get(at)
            if type(counts) is not list or len(counts) != 3 or not all(map(_is_number, counts)):
                _corrupt("a directory has no totals")
            extras[at] = (None, None, tuple(counts))
    if len(targets) != kinds.count(_SYMLINK) or len(totals) != kinds.count(_DIRECTORY):
        _corrupt("a target or totals belong to no entry")
    for at, record in records.items():
        if type(at) is not int or not 0 <= at < len(kinds) or kinds[at] != _FILE:
            _corrupt("a file record belongs to no file")
        if type(record) is not bytes or len(record) != HASH_SIZE:
            _corrupt("a file record's hash has not 32 bytes")
        extras[at] = (record, None, None)


def _check_empty_directories(extras: list[tuple[Any, ...] | None], numbers: bytes) -> None:
    for index, extra in enumerate(extras):
        if extra is not None and extra[2] == (0, 0, 0):
            at = index * 24
            if numbers[at : at + 8] != bytes(8) or numbers[at + 8 : at + 16] != numbers[at + 16 : at + 24]:
                _corrupt("an empty directory has a size, or more than one time")


def _decode_inner(level: int, document: list[Any]) -> Inner:
    if len(document) != _INNER_ITEMS:
        _corrupt("its items are not those of an inner node")
    _, _, keys, hashes, numbers = document
    count = _check_names(keys, 1)
    _check_bytes(hashes, count * 32)
    _check_bytes(numbers, count * 56)
    if not numbers[7::8].isascii():
        _corrupt("a number is out of range")
    node = Inner(level, (keys, hashes, numbers))
    if 0 in node.counts():
        _corrupt("a child holds nothing")
    return node


def _check_names(names: Any, minimum: int) -> int:
    """Refuses what is not an ascending list of names; returns their number."""
    if type(names) is not list or not minimum <= len(names) <= MAXIMUM_ENTRIES:
        _corrupt("the number of its names is out of range")
    if not names:
        return 0
    if set(map(type, names)) != {str} or not all(map(lt, names, names[1:])):
        _corrupt("its names are not sorted text")
    joined = "".join(names)
    if "/" in joined or "\0" in joined or "" in names or "." in names or ".." in names:
        _corrupt("it holds a name that no path can hold")
    return len(names)


def _leaf_document(columns: Columns) -> list[Any]:
    names, kinds, hashes, numbers, types, extras = columns
    records: dict[int, Hash] = {}
    targets: dict[int, str] = {}
    totals: dict[int, list[int]] = {}
    if any(extras):
        for at, extra in enumerate(extras):
            if extra is None:
                continue
            record, target, counts = extra
            if record is not None:
                records[at] = record
            elif target is not None:
                targets[at] = target
            else:
                totals[at] = list(counts)
    unique = sorted(set(types) - {None})
    places: dict[str | None, int] = {None: 0, **{text: place for place, text in enumerate(unique, 1)}}
    index = bytes([places[text] for text in types])
    return [FORMAT, 0, names, kinds, hashes, numbers, unique, index, records, targets, totals]


def _extra_of(entry: Entry) -> tuple[Any, ...]:
    """The sparse part of an entry that has one; refuses what does not fit the entry's kind."""
    kind, record, target, totals = entry.kind, entry.record, entry.target, entry.totals
    if kind == _FILE:
        fits = target is None and totals is None and record is not None and len(record) == HASH_SIZE
        extra: tuple[Any, ...] = (record, None, None)
    elif kind == _SYMLINK:
        fits = target is not None and record is None and totals is None and entry.content_type is None
        fits = fits and len(target or "") <= MAXIMUM_PATH_BYTES
        extra = (None, target, None)
    elif kind == _DIRECTORY and totals is not None:
        counts = (totals.files, totals.directories, totals.symlinks)
        fits = (
            target is None and record is None and entry.content_type is None and all(map(_is_number, counts))
        )
        fits = fits and totals == totals_of(counts, entry.size, entry.created_ms, entry.updated_ms)
        fits = fits and (any(counts) or (entry.size == 0 and entry.created_ms == entry.updated_ms))
        extra = (None, None, counts)
    else:
        fits, extra = False, ()
    if not fits:
        raise InvalidInput("An entry has members that do not fit its kind.")
    return extra


def _pack(entries: Sequence[Entry]) -> bytes:
    numbers = [number for entry in entries for number in (entry.size, entry.created_ms, entry.updated_ms)]
    if numbers and not (min(numbers) >= 0 and max(numbers) <= MAXIMUM_NUMBER):
        raise InvalidInput("An entry's size and times must be between 0 and 2**63 - 1.")
    return pack(f"<{len(numbers)}Q", *numbers)


def _check_bytes(column: Any, size: int) -> None:
    if type(column) is not bytes or len(column) != size:
        _corrupt("a column has the wrong length")


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAXIMUM_NUMBER


def _refuse_tag(*_: Any) -> NoReturn:
    raise ValueError("a tag")


# Tags that the CBOR library would turn into objects, some at a cost that a payload's author chooses.
_NO_TAGS = dict.fromkeys(
    (0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000, 55799),
    _refuse_tag,
)


def _corrupt(reason: str) -> NoReturn:
    raise CorruptRecord(f"A directory node is malformed: {reason}.")
