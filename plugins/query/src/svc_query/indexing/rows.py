"""The view's rows as values, and as the bytes that are stored (MessagePack arrays)."""

from __future__ import annotations

from typing import Any

import msgspec
import zstandard

from svc.plugin import Hash, Path

__all__ = [
    "ConfigurationRow",
    "DirectoryRow",
    "DocumentRow",
    "FailureRow",
    "FieldRow",
    "IndexRow",
    "JobRow",
    "ReindexRow",
    "State",
    "decode_document",
    "decode_path",
    "decode_row",
    "decode_texts",
    "encode",
    "encode_texts",
]

_LARGE_INTEGER = 1
_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
_COMPRESSED, _PLAIN = b"z", b"-"
_WORTH_COMPRESSING = 256


class State(msgspec.Struct, array_like=True):
    """Where the table stands.

    Attributes:
        epoch: names the numbering.
        flushed: documents with smaller numbers are in the files of the indexes.
        flushes: how many flushes there were.
        change: goes up with every transaction that changes anything.
        documents: that live.
        dead: that do not; goes up with each.
        tail_bytes: of the rows of the documents that are not flushed yet, about.
        manifests: goes up when the row of an index changes.
        directories: goes up when the row of a directory changes.
        types: names the index types that were in use when documents were made last.
        parsers: names the parsers likewise.
        sequence: number of the last commit that changed anything.
        wipes: whether all rows are being removed, to begin with a new numbering.
        providers: ids of the plugins that the index types and parsers came from.
    """

    epoch: bytes
    next_number: int = 1
    flushed: int = 1
    flushes: int = 0
    change: int = 0
    documents: int = 0
    dead: int = 0
    tail_bytes: int = 0
    next_configuration: int = 1
    next_index: int = 1
    next_job: int = 1
    manifests: int = 0
    directories: int = 0
    types: str = ""
    parsers: str = ""
    sequence: int = 0
    wipes: bool = False
    providers: tuple[str, ...] = ()


class DocumentRow(msgspec.Struct, array_like=True, gc=False):
    """A document.

    Attributes:
        path: segments joined by 0x01.
        configuration: number of what was indexed of it.
        parser: name of the parser that its values came from; empty when none was asked for.
        values: for each field of the configuration that is not virtual a list of values; 0 for none, 1 where
            they are long and have a row of their own.
    """

    path: str
    size: int
    content_type: str | None
    created_ms: int
    updated_ms: int
    hash: Hash
    configuration: int
    parser: str = ""
    values: list[Any] = []


class _PathRow(msgspec.Struct, array_like=True, gc=False):
    """The beginning of a ``DocumentRow``; what follows is passed over."""

    path: str


class FieldRow(msgspec.Struct, array_like=True, frozen=True):
    """A field of a configuration; ``source`` has no steps for a virtual field.

    Attributes:
        parser: that the configuration asks for, or None.
        types: (name of the index type, options as canonical JSON, its format), of those in use.
        compression: of long values.
        encoding: of texts that do not say theirs, or None.
    """

    name: str
    source: tuple[str | int, ...]
    value_type: str
    parser: str | None
    types: tuple[tuple[str, str, int], ...]
    compression: str = "zstd"
    encoding: str | None = None

    @property
    def reading(self) -> tuple[object, ...]:
        """What makes the values: where two fields have the same, so have they."""
        return self.name, self.source, self.value_type, self.parser, self.encoding


class ConfigurationRow(msgspec.Struct, array_like=True, frozen=True):
    """All that is indexed of a file: what several configurations on the way to the root say together.

    The fields are sorted by name.
    """

    fields: tuple[FieldRow, ...]


class DirectoryRow(msgspec.Struct, array_like=True, frozen=True):
    """The ``indexes.json`` of a directory; ``content`` is empty when it is not valid, for a ``problem``."""

    hash: Hash
    content: bytes
    problem: str = ""


class IndexRow(msgspec.Struct, array_like=True):
    """An index.

    Attributes:
        field: name of the field; ``@path`` and ``@fields`` with an empty type are the driver's own.
        options: as canonical JSON.
        format: of the index type, when it was made.
        manifest: what names its files; None before the first flush.
        value_type: of the values of the first field that it was made for.
        problem: why it is out of use until it is rebuilt, or empty.
    """

    field: str
    type: str
    options: str
    format: int
    manifest: bytes | None = None
    value_type: str = "auto"
    problem: str = ""

    @property
    def name(self) -> tuple[str, str, str, int]:
        """What it is shared by."""
        return self.field, self.type, self.options, self.format


class JobRow(msgspec.Struct, array_like=True):
    """Work over everything at and below a directory.

    Attributes:
        path: the directory, segments joined by 0x01.
        reason: ``build``, ``configuration``, ``tree``, ``extensions``, ``rebuild`` or ``repair``.
        total: files, as they were when it began.
        since_ms: when it was made, Unix milliseconds.
        position: the last path that is done, segments joined by 0x01; None at the beginning.
        done: files that are done.
        until: documents with numbers below it are made anew; 0 where only those that changed are.
        reads: whether their files are read again for it.
        is_held: whether it waits until the index has room for more documents.
        skipped: whether it has passed over files for which there was no room.
    """

    path: str
    reason: str
    total: int
    since_ms: int
    position: str | None = None
    done: int = 0
    until: int = 0
    reads: bool = False
    is_held: bool = False
    skipped: bool = False

    @property
    def top(self) -> str:
        """The top-level directory that it is about; empty for all of them, and for files beside them."""
        return self.path.partition("\x01")[0]


class ReindexRow(msgspec.Struct, array_like=True, frozen=True):
    """A reindex that somebody does beside the view's own work, for those who ask meanwhile.

    ``path`` is the directory, segments joined by 0x01. ``since_ms`` is when it began, ``seen_ms`` when it
    last gave a sign of life. The others count files.
    """

    path: str
    total: int
    done: int
    since_ms: int
    seen_ms: int


class FailureRow(msgspec.Struct, array_like=True):
    """What went wrong with a file; ``number`` is of the document.

    Attributes:
        message: why it could not be read; empty when it could.
        not_converted: how many values their fields could not take, by field.
        indexes: why an index did not take it, by ``field: type``.
    """

    number: int
    at_ms: int
    message: str = ""
    not_converted: dict[str, int] = {}
    indexes: dict[str, str] = {}


def _extension(code: int, data: memoryview) -> Any:
    if code != _LARGE_INTEGER:
        raise ValueError(f"unknown extension {code}")
    return int.from_bytes(data, "big", signed=True)


_encoder = msgspec.msgpack.Encoder()
_documents = msgspec.msgpack.Decoder(DocumentRow, ext_hook=_extension)
_paths = msgspec.msgpack.Decoder(_PathRow, ext_hook=_extension)
_values = msgspec.msgpack.Decoder(list[Any], ext_hook=_extension)
_decoders: dict[type, msgspec.msgpack.Decoder[Any]] = {}


def encode(row: Any) -> bytes:
    """Returns the bytes of a row."""
    try:
        return _encoder.encode(row)
    except OverflowError:
        return _encoder.encode(msgspec.structs.replace(row, values=_packable(row.values)))


def decode_row(kind: type, value: bytes) -> Any:
    """Returns the row of stored bytes."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    return decoder.decode(value)


def decode_document(value: bytes) -> DocumentRow:
    """Returns the row of a document."""
    return _documents.decode(value)


def decode_path(value: bytes) -> Path:
    """Returns the path of the row of a document, without the rest."""
    return tuple(_paths.decode(value).path.split("\x01"))


def encode_texts(values: list[Any], compression: str) -> bytes:
    """Returns long values as they are stored."""
    content = _encoder.encode(_packable(values))
    if compression == "zstd" and len(content) >= _WORTH_COMPRESSING:
        return _COMPRESSED + zstandard.ZstdCompressor(level=1).compress(content)
    return _PLAIN + content


def decode_texts(value: bytes) -> list[Any]:
    """Returns long values of stored bytes."""
    content = value[1:]
    if value[:1] == _COMPRESSED:
        content = zstandard.ZstdDecompressor().decompress(content)
    return _values.decode(content)


def _packable(value: Any) -> Any:
    """A value that MessagePack can hold: integers of more than 64 bits are an extension."""
    if isinstance(value, list):
        return [_packable(item) for item in value]
    if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        return msgspec.msgpack.Ext(
            _LARGE_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
        )
    return value
