"""Files that are forged or lie are refused, and the database stays what it was, byte for byte."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import cbor2
import pytest
import zstandard
from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from svc.errors import ForeignFile
from svc.log import encode_void
from svc.objects.file_record import FileRecord
from svc.plugin import ObjectKind, content_hasher
from svc_backup.format import IncomingLimits

NAMES, KINDS, HASHES, NUMBERS, TYPES, INDEX, RECORDS, TARGETS, TOTALS = range(2, 11)


# -- records --------------------------------------------------------------------------------------


def test_a_record_with_another_content_than_its_hash_is_refused(shared_source, refused, forge) -> None:
    parts = forge.of(shared_source.export())
    piece = parts.of_kind(ObjectKind.CHUNK)[3]
    piece.hash = piece.identity
    piece.content = b"x" * len(piece.content)
    assert "hash" in refused(parts.built()).message


@pytest.mark.parametrize("kind", [ObjectKind.CHUNK, ObjectKind.FILE_RECORD, ObjectKind.NODE])
def test_a_missing_object_is_refused(shared_source, refused, forge, kind: ObjectKind) -> None:
    parts = forge.of(shared_source.export())
    parts.pieces.remove(parts.of_kind(kind)[0])
    assert "named" in refused(parts.built()).message


def test_a_missing_object_of_a_patch_is_refused(shared_source, refused) -> None:
    error = refused(shared_source.patch(), force=True)
    assert "neither the file nor the database" in error.message


def test_an_object_that_nothing_names_is_refused(shared_source, refused, forge, piece) -> None:
    parts = forge.of(shared_source.export())
    parts.pieces.insert(0, piece(ObjectKind.CHUNK, b"nobody's"))
    assert "belong to no version" in refused(parts.built()).message


def test_an_object_that_is_there_twice_is_refused(shared_source, refused, forge) -> None:
    parts = forge.of(shared_source.export())
    parts.pieces.insert(0, parts.pieces[0])
    assert "twice" in refused(parts.built()).message


def test_an_object_before_what_it_names_is_refused(shared_source, refused, forge) -> None:
    parts = forge.of(shared_source.export())
    parts.pieces.insert(0, parts.pieces.pop())
    assert "behind" in refused(parts.built()).message


@pytest.mark.parametrize("kind", [ObjectKind.CHUNK, ObjectKind.FILE_RECORD, ObjectKind.NODE])
def test_an_object_that_calls_itself_the_systems_is_refused(
    shared_source, refused, forge, kind: ObjectKind
) -> None:
    parts = forge.of(shared_source.export())
    parts.of_kind(kind)[-1].system = True
    refused(parts.built())


def test_an_object_of_another_kind_than_its_place_is_refused(shared_source, refused, forge, piece) -> None:
    parts = forge.of(shared_source.export())
    for position, one in enumerate(parts.pieces):
        if one.kind == ObjectKind.FILE_RECORD:
            parts.pieces[position] = piece(ObjectKind.NODE, one.content, hash=one.identity)
    refused(parts.built())


@pytest.mark.parametrize("field", ["flags", "codec", "reserved", "stored", "raw", "magic", "kind", "time"])
def test_a_wrong_field_of_a_record_under_a_right_checksum_is_refused(
    shared_source, refused, field: str
) -> None:
    data = bytearray(shared_source.export())
    at, form, value = {
        "magic": (0, "<I", 1),
        "kind": (4, "<B", 9),
        "flags": (5, "<B", 2),
        "codec": (6, "<B", 7),
        "reserved": (7, "<B", 1),
        "stored": (8, "<I", 3),
        "raw": (12, "<I", 0xFFFFFFFF),
        "time": (16, "<Q", 1 << 63),
    }[field]
    struct.pack_into(form, data, 128 + at, value)
    struct.pack_into("<Q", data, 128 + 64, xxh3_64_intdigest(bytes(data[128 : 128 + 64])))
    refused(bytes(data))


def test_voids_and_deletions_do_not_belong_into_an_export(shared_source, refused, forge, piece) -> None:
    data = shared_source.export()
    assert isinstance(refused(data[:128] + encode_void(0, time_ms=1) + data[128:]), ForeignFile)
    parts = forge.of(data)
    parts.pieces.append(piece(ObjectKind.DELETION, b"\xa0"))
    assert isinstance(refused(parts.built()), ForeignFile)


# -- lengths that lie, and bombs ------------------------------------------------------------------


def bomb(size: int) -> bytes:
    return zstandard.ZstdCompressor(level=19).compress(bytes(size))


def test_a_chunk_that_unpacks_to_more_than_a_chunk_is_refused(shared_source, refused, forge) -> None:
    parts = forge.of(shared_source.export())
    chunk = parts.of_kind(ObjectKind.CHUNK)[0]
    chunk.hash, chunk.codec, chunk.stored, chunk.raw_length = chunk.identity, 1, bomb(1 << 28), 1 << 28
    assert "more content" in refused(parts.built()).message


@pytest.mark.parametrize("stated", [10, 200_000])
def test_a_chunk_that_unpacks_to_more_than_it_states_is_refused(
    shared_source, refused, forge, stated: int
) -> None:
    parts = forge.of(shared_source.export())
    chunk = parts.of_kind(ObjectKind.CHUNK)[0]
    chunk.hash, chunk.codec, chunk.stored, chunk.raw_length = chunk.identity, 1, bomb(1 << 28), stated
    refused(parts.built())


def test_a_frame_that_hides_its_size_is_refused(shared_source, refused, forge) -> None:
    parts = forge.of(shared_source.export())
    chunk = next(one for one in parts.of_kind(ObjectKind.CHUNK) if len(one.content) > 5000)
    hidden = zstandard.ZstdCompressor(write_content_size=False).compress(chunk.content)
    chunk.codec, chunk.stored, chunk.raw_length = 1, hidden, len(chunk.content)
    refused(parts.built())


@pytest.mark.parametrize("kind", [ObjectKind.NODE, ObjectKind.FILE_RECORD])
def test_a_node_or_record_that_unpacks_to_too_much_is_refused(
    shared_source, refused, forge, kind: ObjectKind
) -> None:
    parts = forge.of(shared_source.export())
    piece = parts.of_kind(kind)[0]
    piece.hash, piece.codec, piece.stored, piece.raw_length = piece.identity, 1, b"\0" * 50, 1 << 30
    assert "more content" in refused(parts.built()).message


def test_all_contents_together_have_a_limit(shared_source, refused) -> None:
    limits = IncomingLimits(expansion=1, least_content=0)
    error = refused(shared_source.export(), limits=limits)
    assert "more content" in error.message


def test_a_file_of_one_chunk_a_million_times_is_refused(shared_source, refused, forge, piece) -> None:
    """Three kilobytes that say they are 250 GiB: hashing them would take minutes."""
    content = bytes(1 << 18)
    parts = forge.of(shared_source.export())
    hasher = content_hasher()
    hasher.update(content)
    chunk = piece(ObjectKind.CHUNK, content)
    count = 1_000_000
    record = FileRecord(count << 18, hasher.digest(), (chunk.identity,) * count, (1 << 18,) * count)
    named = piece(ObjectKind.FILE_RECORD, record.encode())
    parts.pieces[:0] = [chunk, named]
    root = parts.pieces[-1]

    def claim(document: list[Any]) -> None:
        row = document[NAMES].index("empty")
        document[HASHES] = _patched(document[HASHES], row * 32, record.content_hash)
        document[NUMBERS] = _patched(document[NUMBERS], row * 24, struct.pack("<Q", record.size))
        document[RECORDS] = dict(sorted({**document[RECORDS], row: named.identity}.items()))

    assert "more content" in refused(parts.with_node(root, claim)).message


def _patched(data: bytes, at: int, piece: bytes) -> bytes:
    return data[:at] + piece + data[at + len(piece) :]


# -- file records ---------------------------------------------------------------------------------


def with_record(parts: Any, change: Callable[[FileRecord], bytes]) -> bytes:
    """The file with its one file record changed, and the root naming the changed one."""
    (record,) = parts.of_kind(ObjectKind.FILE_RECORD)
    record.content = change(FileRecord.decode(record.content))
    identity = record.identity

    def name(document: list[Any]) -> None:
        document[RECORDS] = dict.fromkeys(document[RECORDS], identity)

    return parts.with_node(parts.pieces[-1], name)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: replace(record, size=record.size + 1).encode(),
        lambda record: replace(record, content_hash=bytes(32)).encode(),
        lambda record: replace(record, chunks=record.chunks[::-1], lengths=record.lengths[::-1]).encode(),
        lambda record: replace(
            record, lengths=(record.lengths[0] + 1, record.lengths[1] - 1, *record.lengths[2:])
        ).encode(),
        lambda record: replace(record, chunks=(bytes(32), *record.chunks[1:])).encode(),
        lambda record: replace(
            record, chunks=(*record.chunks, record.chunks[0]), lengths=(*record.lengths, 0)
        ).encode(),
        lambda record: record.encode() + b"\0",
        lambda record: replace(
            record, content_hash=None, chunks=record.chunks[::-1], lengths=record.lengths[::-1]
        ).encode(),
        lambda record: replace(record, content_hash=None).encode() + b"\0",
        lambda record: cbor2.dumps([0, record.size]),
        lambda record: cbor2.dumps([1, record.size]),
        lambda record: cbor2.dumps([2, record.size]),
        lambda record: cbor2.dumps({}),
        lambda record: b"\xff" * 100,
        lambda record: b"\x9f" * 1000,
        lambda record: b"\xd8\x1c" * 1000 + b"\x80",
        lambda record: cbor2.dumps([1, -1, bytes(32), b"", b"", {}]),
        lambda record: cbor2.dumps([1, 2**70, bytes(32), b"", b"", {}]),
        lambda record: cbor2.dumps([1, True, bytes(32), b"", b"", {}]),
        lambda record: cbor2.dumps([1, 0, bytes(32), b"", b"", {}]),
        lambda record: cbor2.dumps([1, 0, bytes(32), b"", b"", {1: 2}]),
    ],
)
def test_a_file_record_that_lies_is_refused(
    shared_source, refused, forge, change: Callable[[FileRecord], bytes]
) -> None:
    refused(with_record(forge.of(shared_source.export()), change))


# -- directories ----------------------------------------------------------------------------------


def rename(old: str, new: str) -> Callable[[list[Any]], None]:
    def change(document: list[Any]) -> None:
        document[NAMES][document[NAMES].index(old)] = new

    return change


def number(name: str, column: int, value: int) -> Callable[[list[Any]], None]:
    def change(document: list[Any]) -> None:
        at = document[NAMES].index(name) * 24 + column * 8
        document[NUMBERS] = _patched(document[NUMBERS], at, struct.pack("<Q", value))

    return change


def hashed(name: str, value: bytes) -> Callable[[list[Any]], None]:
    def change(document: list[Any]) -> None:
        document[HASHES] = _patched(document[HASHES], document[NAMES].index(name) * 32, value)

    return change


def targeted(target: str) -> Callable[[list[Any]], None]:
    def change(document: list[Any]) -> None:
        document[TARGETS] = dict.fromkeys(document[TARGETS], target)

    return change


def counted(document: list[Any]) -> None:
    document[TOTALS] = {row: [counts[0] + 1, *counts[1:]] for row, counts in document[TOTALS].items()}


@pytest.mark.parametrize(
    "change",
    [
        rename("deep", "."),
        rename("deep", ".."),
        rename("deep", ".svc-system"),
        rename("deep", ".system"),
        rename("deep", "a/../b"),
        rename("deep", "a\0b"),
        rename("deep", "a\nb"),
        rename("deep", ""),
        rename("deep", "cafe\u0301"),
        rename("deep", "d" * 256),
        rename("deep", "\u00e9" * 200),
        rename("deep", "zzz"),
        rename("deep", "empty"),
        number("empty", 0, 5),
        number("large.bin", 0, 5),
        number("deep", 0, 5),
        number("empty", 1, 1 << 63),
        number("link", 0, 3),
        hashed("empty", bytes(32)),
        hashed("large.bin", bytes(32)),
        hashed("deep", bytes(32)),
        hashed("link", bytes(32)),
        targeted("relative"),
        targeted("/" + "x" * 5000),
        targeted("/nul\0"),
        counted,
        lambda document: document.append(1),
        lambda document: document.__setitem__(1, 1),
        lambda document: document.__setitem__(0, 2),
    ],
)
def test_a_directory_that_lies_is_refused(
    shared_source, refused, forge, change: Callable[[list[Any]], None]
) -> None:
    parts = forge.of(shared_source.export())
    assert refused(parts.with_node(parts.pieces[-1], change)).message


def test_a_directory_that_is_not_spelled_in_the_one_valid_way_is_refused(
    shared_source, refused, forge
) -> None:
    parts = forge.of(shared_source.export())
    root = parts.pieces[-1]
    root.content = b"\x9f" + root.content[1:] + b"\xff"
    refused(parts.built(root=root.identity))


def test_a_directory_whose_nodes_are_cut_elsewhere_is_refused(shared_source, refused, forge) -> None:
    """An inner root that names the leaves of a directory in another order."""
    parts = forge.of(shared_source.export())
    inner = next(piece for piece in parts.of_kind(ObjectKind.NODE) if cbor2.loads(piece.content)[1] == 1)
    document = cbor2.loads(inner.content)
    document[3] = document[3][32:64] + document[3][:32] + document[3][64:]
    inner.content = cbor2.dumps(document)
    refused(parts.built(root=inner.identity))


def test_a_path_that_is_too_long_is_refused(shared_source, refused, forge, piece) -> None:
    """Directories within directories, each node valid by itself."""
    from svc.tree import NO_TOTALS, Entry, EntryKind, build, directory_entry

    class Nodes:
        def __init__(self) -> None:
            self.pieces: dict[bytes, Any] = {}
            self.decoded: dict[bytes, Any] = {}

        def read_node(self, hash: bytes) -> Any:
            return self.decoded[hash]

        def write_node(self, payload: bytes, node: Any = None, /) -> bytes:
            from svc.plugin import decode_node

            made = piece(ObjectKind.NODE, payload)
            self.pieces.setdefault(made.identity, made)
            self.decoded[made.identity] = node or decode_node(payload)
            return made.identity

    nodes = Nodes()
    empty = shared_source.database.at(shared_source.first).get(("hollow", "inside")).hash
    from svc.tree import decode_node, empty_payload

    nodes.decoded[empty] = decode_node(empty_payload())
    entry = Entry(EntryKind.DIRECTORY, empty, 0, 1, 1, totals=NO_TOTALS)
    root = empty
    for _ in range(17):
        root = build(nodes, [("d" * 250, entry)])
        entry = directory_entry(nodes, root, 0)
    parts = forge.of(shared_source.export())
    parts.pieces = [one for one in nodes.pieces.values() if one.identity != empty]
    totals = replace(parts.commit.totals, files=0, directories=17, symlinks=0, size=0, chunks=0)
    assert "4096 bytes" in refused(parts.built(root=root, totals=totals)).message


# -- the commit -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"sequence": 2},
        {"parent": bytes(32)},
        {"parent_root": bytes(32)},
        {"root": bytes(32)},
        {"system_root": bytes(32)},
        {"parent_system_root": bytes(32)},
        {"first_offset": 128},
        {"durable_end": 128},
        {"durable_end": 1 << 60},
    ],
)
def test_a_commit_that_does_not_close_an_export_is_refused(
    shared_source, refused, forge, changes: dict[str, Any]
) -> None:
    refused(forge.of(shared_source.export()).built(**changes))


@pytest.mark.parametrize("field", ["files", "directories", "symlinks", "size", "chunks"])
def test_totals_that_lie_are_refused(shared_source, refused, forge, field: str) -> None:
    parts = forge.of(shared_source.export())
    totals = replace(parts.commit.totals, **{field: getattr(parts.commit.totals, field) + 1})
    refused(parts.built(totals=totals))


def test_a_version_that_is_a_file_record_is_refused(shared_source, refused, forge) -> None:
    parts = forge.of(shared_source.export())
    refused(parts.built(root=parts.of_kind(ObjectKind.FILE_RECORD)[0].identity))


# -- patches --------------------------------------------------------------------------------------


def test_a_patch_that_lies_about_its_deletions_is_refused(
    shared_source, target, refused, take_in, forge
) -> None:
    from svc_backup.format.layout import Deletions

    take_in(target, shared_source.export(), promote=True)
    for change in (
        lambda one: replace(one, paths=one.paths[:-1]),
        lambda one: replace(one, paths=("/other", *one.paths[1:])),
        lambda one: replace(one, paths=("/a/../b", *one.paths[1:])),
        lambda one: replace(one, paths=("relative", *one.paths[1:])),
        lambda one: replace(one, base=bytes(32)),
        lambda one: replace(one, target=bytes(32)),
        lambda one: replace(one, counts=replace(one.counts, added=7)),
        lambda one: replace(one, counts=replace(one.counts, deleted=7)),
    ):
        parts = forge.of(shared_source.patch())
        (piece,) = parts.of_kind(ObjectKind.DELETION)
        piece.content = change(Deletions.decode(piece.content)).encode()
        refused(parts.built())
    parts = forge.of(shared_source.patch())
    parts.pieces = [one for one in parts.pieces if one.kind != ObjectKind.DELETION]
    refused(parts.built())


def test_a_patch_cannot_reach_objects_of_the_system(target, refused, take_in, forge, shared_source) -> None:
    """Its tree names a directory of the target's system tree: users would read it as files."""
    take_in(target, shared_source.export(), promote=True)
    with target.transaction() as transaction:
        transaction.put_system(("users", "ann"), b"secret")
    system = target.system().get(("users",))
    parts = forge.of(shared_source.patch())
    root = parts.of_kind(ObjectKind.NODE)[-1]
    refused(parts.with_node(root, hashed("moved", system.hash)), force=True)
    chunk = target.objects.read_record(target.system().get(("users", "ann")).record).chunks[0]
    parts = forge.of(shared_source.patch())
    root = parts.of_kind(ObjectKind.NODE)[-1]

    def name_chunk(document: list[Any]) -> None:
        hashed("new", chunk)(document)
        number("new", 0, 6)(document)

    assert "another kind or tree" in refused(parts.with_node(root, name_chunk), force=True).message
