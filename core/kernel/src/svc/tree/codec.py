"""The bytes of a node: encoding, decoding, and the columns of new entries.

What is malformed raises ``CorruptRecord`` here and nowhere later: what decoding accepts is safe to walk.

cbor2 decodes nodes and encodes texts and maps; the heads of arrays and byte strings are made once and joined
by hand. That takes 15,700 instructions for a leaf of 32 entries (42,600 where its names are not encoded yet),
by cbor2 alone 82,900; a small PUT writes four nodes, in 1.8 million instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import lt
from struct import Struct, error, pack
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
    "encode_names",
    "entry_columns",
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
_KINDS = {kind: bytes((kind,)) for kind in _KIND_BYTES}
_ROW = Struct("<3Q")
_LEAF_ITEMS = 11
_INNER_ITEMS = 5
_LEAF_START = cbor2.dumps([FORMAT, 0, *[0] * (_LEAF_ITEMS - 2)])[:3]
_INNER_STARTS = [
    cbor2.dumps([FORMAT, level, *[0] * (_INNER_ITEMS - 2)])[: 2 - _INNER_ITEMS]
    for level in range(MAXIMUM_LEVEL + 1)
]
_EMPTY_MAP = cbor2.dumps({})
_NO_EXTRAS = _EMPTY_MAP * 3
_THREE = cbor2.dumps([0, 0, 0])[:1]
_NUMBERS = [cbor2.dumps(number) for number in range(256)]
_MAPS = [
    cbor2.dumps(dict.fromkeys(range(count)))[: 1 if count < 24 else 2] for count in range(MAXIMUM_ENTRIES + 1)
]
# By number of rows: the heads of the array of names, and of byte strings of 1, 24, 32 and 56 bytes a row.
_HEADS = [
    (
        cbor2.dumps([0] * count)[: -count or None],
        *[cbor2.dumps(bytes(count * width))[: -count * width or None] for width in (1, 24, 32, 56)],
    )
    for count in range(MAXIMUM_ENTRIES + 1)
]


def leaf_columns(items: Sequence[tuple[str, Entry]]) -> Columns:
    """Returns the columns of some entries, which are sorted by name already.

    Raises InvalidPath for a name that no path can hold, InvalidInput for a number or entry that does not fit.
    """
    if len(items) == 1:
        return _leaf_row(*items[0])
    return entry_columns([name for name, _ in items], [entry for _, entry in items])


def entry_columns(names: list[str], entries: Sequence[Entry]) -> Columns:
    """As ``leaf_columns``, for names and entries that are two columns already."""
    joined = "".join(names)
    if (
        "/" in joined
        or "\0" in joined
        or not _NO_NAMES.isdisjoint(names)
        or max(map(len, names), default=0) > MAXIMUM_SEGMENT_BYTES
    ):
        _refuse_name()
    types = [entry.content_type for entry in entries]
    if any(text is not None and len(text) > MAXIMUM_CONTENT_TYPE for text in set(types)):
        _refuse_type()
    extras = [
        None
        if entry.record is None and entry.target is None and entry.totals is None and entry.kind == _FILE
        else _extra_of(entry)
        for entry in entries
    ]
    hashes = [entry.hash for entry in entries]
    if hashes and set(map(len, hashes)) != {HASH_SIZE}:
        _refuse_hash()
    kinds = bytes([entry.kind for entry in entries])
    numbers = [number for entry in entries for number in (entry.size, entry.created_ms, entry.updated_ms)]
    return names, kinds, b"".join(hashes), _pack_numbers(numbers), types, extras


def _pack_numbers(numbers: list[int]) -> bytes:
    try:
        packed = pack(f"<{len(numbers)}Q", *numbers)
    except error:
        _refuse_number()
    if not packed[7::8].isascii():  # one is over the maximum
        _refuse_number()
    return packed


def _leaf_row(name: str, entry: Entry) -> Columns:
    if "/" in name or "\0" in name or name in _NO_NAMES or len(name) > MAXIMUM_SEGMENT_BYTES:
        _refuse_name()
    kind, content_type = entry.kind, entry.content_type
    if content_type is not None and len(content_type) > MAXIMUM_CONTENT_TYPE:
        _refuse_type()
    is_plain = kind == _FILE and entry.record is None and entry.target is None and entry.totals is None
    extra = None if is_plain else _extra_of(entry)
    content_hash = entry.hash
    if len(content_hash) != HASH_SIZE:
        _refuse_hash()
    numbers = entry.size, entry.created_ms, entry.updated_ms
    if min(numbers) < 0 or max(numbers) > MAXIMUM_NUMBER:
        _refuse_number()
    return [name], _KINDS[kind], content_hash, _ROW.pack(*numbers), [content_type], [extra]


def encode_names(names: Sequence[str]) -> bytes:
    """Returns the encoded names of a node, without the head of their array."""
    return _dumps(names)[1 if len(names) < 24 else 2 :] if names else b""


def encode_columns(level: int, columns: Columns, names: bytes | None = None) -> bytes:
    """Returns the payload of a node: the only byte string for its content.

    Raises InvalidPath for a name that is not valid Unicode, and InvalidInput over ``MAXIMUM_NODE_BYTES``.
    """
    count = len(columns[0])
    if names is None:
        names = encode_names(columns[0])
    of_names, of_1, of_24, of_32, of_56 = _HEADS[count]
    if level:
        _, hashes, numbers = columns
        payload = b"".join((_INNER_STARTS[level], of_names, names, of_32, hashes, of_56, numbers))
    else:
        _, kinds, hashes, numbers, types, extras = columns
        unique, index = _encode_types(types)
        sparse = _encode_extras(extras) if any(extras) else _NO_EXTRAS
        payload = b"".join(
            (
                _LEAF_START, of_names, names, of_1, kinds, of_32, hashes, of_24, numbers,
                unique, of_1, index, sparse,
            )
        )  # fmt: skip
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


def _encode_types(types: Sequence[str | None]) -> tuple[bytes, bytes]:
    different = frozenset(types)
    unique, numbers = _type_table(different)
    if len(different) == 1:
        return unique, bytes((numbers[types[0]],)) * len(types)
    return unique, bytes([numbers[text] for text in types])


@lru_cache(128)
def _type_table(types: frozenset[str | None]) -> tuple[bytes, dict[str | None, int]]:
    texts = sorted([text for text in types if text is not None])
    return _dumps(texts), {None: 0, **{text: number for number, text in enumerate(texts, 1)}}


def _encode_extras(extras: Sequence[tuple[Any, ...] | None]) -> bytes:
    records: dict[int, Hash] = {}
    targets: dict[int, str] = {}
    totals: dict[int, tuple[int, ...]] = {}
    for at, extra in enumerate(extras):
        if extra is None:
            continue
        record, target, counts = extra
        if record is not None:
            records[at] = record
        elif target is not None:
            targets[at] = target
        else:
            totals[at] = counts
    return b"".join(
        (
            _dumps(records) if records else _EMPTY_MAP,
            _dumps(targets) if targets else _EMPTY_MAP,
            _MAPS[len(totals)],
            *[_NUMBERS[at] + _THREE + b"".join(map(_number, counts)) for at, counts in totals.items()],
        )
    )


def _number(value: int) -> bytes:
    return _NUMBERS[value] if value < len(_NUMBERS) else cbor2.dumps(value)


def _dumps(value: Any) -> bytes:
    try:
        return cbor2.dumps(value)
    except (cbor2.CBOREncodeError, UnicodeEncodeError):
        raise InvalidPath("A name, target or content type must be valid Unicode text.") from None


def _extra_of(entry: Entry) -> tuple[Any, ...]:
    """Returns the sparse part of an entry that has one; refuses what does not fit the entry's kind."""
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


def _refuse_name() -> NoReturn:
    raise InvalidPath("An entry's name may not be empty, '.' or '..', too long, nor hold '/' or NUL.")


def _refuse_type() -> NoReturn:
    raise InvalidInput("A content type is too long.", limit=MAXIMUM_CONTENT_TYPE)


def _refuse_hash() -> NoReturn:
    raise InvalidInput("An entry's hash must have 32 bytes.")


def _refuse_number() -> NoReturn:
    raise InvalidInput("An entry's size and times must be between 0 and 2**63 - 1.")


def _corrupt(reason: str) -> NoReturn:
    raise CorruptRecord(f"A directory node is malformed: {reason}.")
