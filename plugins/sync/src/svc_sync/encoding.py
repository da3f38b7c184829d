"""The bytes of a register, as a page carries them and the system tree keeps them.

``docs/format/sync-registers.md`` says what they are. A register has exactly one valid encoding.
"""

from __future__ import annotations

from typing import Any

import cbor2

from svc.errors import CorruptRecord, UnsupportedFormat
from svc.plugin import HASH_SIZE, Entry, EntryKind
from svc_sync.registers import STABLE, Dot, Register, Version
from svc_sync.values import Directory, Document, Reference, Value

__all__ = ["FORMAT", "MAXIMUM_DOCUMENT_BYTES", "MAXIMUM_REGISTER_BYTES", "decode_register", "encode_register"]

FORMAT = 1
MAXIMUM_REGISTER_BYTES = 1 << 20
MAXIMUM_DOCUMENT_BYTES = 64 << 10

_PARKED, _FRESH = 1, 2
_DIRECTORY, _DOCUMENT, _REFERENCE = 3, 4, 5
_FILE, _LINK = int(EntryKind.FILE), int(EntryKind.SYMLINK)
_LARGEST_NUMBER = (1 << 63) - 1
_LONGEST_TYPE = 255
_LONGEST_TARGET = 4_096


def encode_register(register: Register) -> bytes:
    """Returns the bytes of a register."""
    writers = sorted(register.context)
    places = {writer: place for place, writer in enumerate(writers)}
    context = [number for writer in writers for number in (writer, register.context[writer])]
    rows = []
    for dot, version in sorted(register.versions.items(), reverse=True):
        flags = version.parked * _PARKED + version.fresh * _FRESH
        if dot == STABLE:
            place, age = len(writers), 0
        else:
            place, age = places[dot.writer], register.context[dot.writer] - dot.vt
        rows.append([place, age, flags, _value_item(version.value)])
    return cbor2.dumps([FORMAT, context, rows])


def decode_register(payload: bytes) -> Register:
    """Returns the register of some bytes.

    Raises:
        CorruptRecord: they are not those of a register.
        UnsupportedFormat: a newer program wrote them.
    """
    if len(payload) > MAXIMUM_REGISTER_BYTES:
        raise CorruptRecord(f"A register may have at most {MAXIMUM_REGISTER_BYTES} bytes.")
    try:
        item = cbor2.loads(payload)
    except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
        raise CorruptRecord("A register is not CBOR.") from error
    if not isinstance(item, list) or not item or type(item[0]) is not int:
        raise _malformed()
    if item[0] != FORMAT:
        raise UnsupportedFormat(f"A register has format {item[0]}; this program reads {FORMAT}.")
    register = _register_of(item)
    if encode_register(register) != payload:
        raise CorruptRecord("A register is not encoded in the one way that is valid.")
    return register


def _register_of(item: list[Any]) -> Register:
    if len(item) != 3 or not isinstance(item[1], list) or not isinstance(item[2], list) or len(item[1]) % 2:
        raise _malformed()
    writers, vts = item[1][::2], item[1][1::2]
    if not all(map(_is_number, item[1])) or not all(writers):
        raise _malformed()
    context = dict(zip(writers, vts, strict=True))
    versions: dict[Dot, Version] = {}
    for row in item[2]:
        if not isinstance(row, list) or len(row) != 4 or not all(map(_is_number, row[:3])):
            raise _malformed()
        place, age, flags, value = row
        if place > len(writers) or flags > _PARKED + _FRESH:
            raise _malformed()
        dot = STABLE if place == len(writers) else Dot(vts[place] - age, writers[place])
        if dot.vt < 0 or dot in versions:
            raise _malformed()
        versions[dot] = Version(_value_of(value), bool(flags & _PARKED), bool(flags & _FRESH))
    if all(version.parked for version in versions.values()):
        raise CorruptRecord("A register has no version that counts.")
    return Register(context, versions)


def _value_item(value: Value) -> Any:
    if value is None:
        return None
    if isinstance(value, Directory):
        return [_DIRECTORY, value.own_ms]
    if isinstance(value, Document):
        return [_DOCUMENT, value.data]
    if isinstance(value, Reference):
        return [_REFERENCE, value.root]
    last = value.target if value.kind is EntryKind.SYMLINK else value.content_type
    item = [int(value.kind), value.hash, value.size, value.created_ms, value.updated_ms, last]
    return item if value.record is None else [*item, value.record]


def _value_of(item: Any) -> Value:
    if item is None:
        return None
    if not isinstance(item, list) or not item or type(item[0]) is not int:
        raise _malformed()
    kind, *rest = item
    if kind == _DIRECTORY and len(rest) == 1 and _is_number(rest[0]):
        return Directory(rest[0])
    if kind == _DOCUMENT and len(rest) == 1 and _is_bytes(rest[0], MAXIMUM_DOCUMENT_BYTES):
        return Document(rest[0])
    if kind == _REFERENCE and len(rest) == 1 and _is_hash(rest[0]):
        return Reference(rest[0])
    if kind in (_FILE, _LINK) and len(rest) in (5, 6):
        return _entry_of(kind, *rest)
    raise _malformed()


def _entry_of(
    kind: int, content: Any, size: Any, created: Any, updated: Any, text: Any, record: Any = b""
) -> Entry:
    if not _is_hash(content) or not all(map(_is_number, (size, created, updated))):
        raise _malformed()
    if kind == _LINK:
        if not _is_text(text, _LONGEST_TARGET) or record != b"":
            raise _malformed()
        return Entry(EntryKind.SYMLINK, content, size, created, updated, target=text)
    if not (text is None or _is_text(text, _LONGEST_TYPE)) or not (record == b"" or _is_hash(record)):
        raise _malformed()
    return Entry(EntryKind.FILE, content, size, created, updated, text, record or None)


def _is_number(item: Any) -> bool:
    return type(item) is int and 0 <= item <= _LARGEST_NUMBER


def _is_bytes(item: Any, most: int) -> bool:
    return isinstance(item, bytes) and len(item) <= most


def _is_hash(item: Any) -> bool:
    return isinstance(item, bytes) and len(item) == HASH_SIZE


def _is_text(item: Any, most: int) -> bool:
    return isinstance(item, str) and len(item) <= most


def _malformed() -> CorruptRecord:
    return CorruptRecord("A register is not of the expected form.")
