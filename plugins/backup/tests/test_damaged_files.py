"""Files that are cut, changed or foreign are refused, and the database stays what it was, byte for byte."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from svc.errors import ForeignFile, SvcError, UnsupportedFormat
from svc.plugin import Database, ObjectKind
from svc_maintenance.verification import verify

NAMES, KINDS, HASHES, NUMBERS, TYPES, INDEX, RECORDS, TARGETS, TOTALS = range(2, 11)


def sealed(header: bytes) -> bytes:
    """A file header with its checksum made right."""
    return header[:120] + struct.pack("<Q", xxh3_64_intdigest(header[:120]))


# -- the file as a whole --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 7, 8, 100, 127, 128, 129, 199, 200, 201, 1000])
def test_a_file_that_is_cut_short_at_its_beginning_is_refused(shared_source, refused, size: int) -> None:
    refused(shared_source.export()[:size])


@pytest.mark.parametrize("tenth", range(1, 10))
def test_a_file_that_is_cut_short_is_refused(shared_source, refused, tenth: int) -> None:
    data = shared_source.export()
    refused(data[: len(data) * tenth // 10])
    refused(data[: len(data) * tenth // 10 & ~7])


@pytest.mark.parametrize("missing", [1, 8, 16, 100, 300])
def test_a_file_without_the_end_of_its_commit_is_refused(shared_source, refused, missing: int) -> None:
    refused(shared_source.export()[:-missing])


@pytest.mark.parametrize("more", [b"\0", b"\0" * 8, b"\0" * 72, b"SVCR" + b"x" * 100])
def test_a_file_with_more_behind_its_commit_is_refused(shared_source, refused, more: bytes) -> None:
    refused(shared_source.export() + more)


def test_two_files_in_a_row_are_refused(shared_source, refused) -> None:
    refused(shared_source.export() + shared_source.export()[128:])


@pytest.mark.parametrize(
    "data",
    [
        b"PK\3\4" + b"x" * 500,
        b"\x89PNG\r\n\x1a\n" + b"x" * 500,
        b"{}",
        b"\0" * 1000,
        b"\x89SVC\r\n\x1a\n" * 40,
    ],
)
def test_a_foreign_file_is_refused(refused, data: bytes) -> None:
    refused(data)


def test_a_database_with_a_history_is_told_to_be_exported(shared_source, refused) -> None:
    error = refused(shared_source.database.path.read_bytes())
    assert isinstance(error, ForeignFile)
    assert "svc export" in error.message


@pytest.mark.parametrize("position", range(128))
def test_every_byte_of_the_header_is_guarded(shared_source, refused, position: int) -> None:
    data = bytearray(shared_source.export())
    data[position] ^= 0x41
    refused(bytes(data))


@pytest.mark.parametrize(
    ("offset", "form", "value"),
    [
        (8, "<H", 0),
        (8, "<H", 2),
        (12, "<I", 0x04030201),
        (12, "<I", 7),
        (16, "<I", 256),
        (20, "<I", 2),
        (20, "<I", 3),
        (20, "<I", 1),
        (40, "<B", 0),
        (40, "<B", 2),
    ],
)
def test_a_header_with_a_right_checksum_and_wrong_fields_is_refused(
    shared_source, refused, offset: int, form: str, value: int
) -> None:
    data = bytearray(shared_source.export())
    struct.pack_into(form, data, offset, value)
    refused(sealed(bytes(data)) + bytes(data[128:]))


def test_a_newer_format_is_told_as_such(shared_source, refused) -> None:
    data = bytearray(shared_source.export())
    struct.pack_into("<H", data, 8, 9)
    error = refused(sealed(bytes(data)) + bytes(data[128:]))
    assert isinstance(error, UnsupportedFormat)
    assert "9.0" in error.message


@given(st.data())
@settings(max_examples=40)
def test_a_changed_byte_is_refused_or_harmless(shared_source, tmp_path_factory, take_in, data) -> None:
    whole = bytearray(data.draw(st.sampled_from([shared_source.export(), shared_source.patch()])))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(whole) - 1))
        whole[position] ^= data.draw(st.integers(1, 255))
    _refused_or_harmless(bytes(whole), shared_source, tmp_path_factory, take_in)


@given(st.data())
@settings(max_examples=40)
def test_records_in_any_order_or_number_are_refused_or_harmless(
    shared_source, tmp_path_factory, take_in, forge, data
) -> None:
    parts = forge.of(data.draw(st.sampled_from([shared_source.export(), shared_source.patch()])))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(parts.pieces) - 1))
        action = data.draw(st.sampled_from(["drop", "double", "swap", "kind", "system", "content", "empty"]))
        piece = parts.pieces[position]
        if action == "drop":
            del parts.pieces[position]
        elif action == "double":
            parts.pieces.insert(data.draw(st.integers(0, len(parts.pieces))), piece)
        elif action == "swap":
            other = data.draw(st.integers(0, len(parts.pieces) - 1))
            parts.pieces[position], parts.pieces[other] = parts.pieces[other], piece
        elif action == "kind":
            parts.pieces[position] = replace(
                piece, kind=data.draw(st.sampled_from(list(ObjectKind))), hash=piece.identity
            )
        elif action == "system":
            parts.pieces[position] = replace(piece, system=not piece.system)
        elif action == "content":
            parts.pieces[position] = replace(piece, content=data.draw(st.binary(max_size=200)))
        else:
            parts.pieces[position] = replace(piece, content=b"", hash=piece.identity)
    _refused_or_harmless(parts.built(), shared_source, tmp_path_factory, take_in)


@given(st.data())
@settings(max_examples=40)
def test_malformed_objects_under_right_hashes_are_refused_or_harmless(
    shared_source, tmp_path_factory, take_in, forge, data
) -> None:
    """The bytes of a node or a record are changed, and everything that names it follows."""
    parts = forge.of(shared_source.export())
    (root,) = [piece for piece in parts.pieces if piece.identity == parts.commit.root]
    content = bytearray(root.content)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        action = data.draw(st.sampled_from(["flip", "insert", "remove"]))
        if action == "flip":
            content[position] ^= data.draw(st.integers(1, 255))
        elif action == "insert":
            content[position:position] = data.draw(st.binary(min_size=1, max_size=9))
        else:
            del content[position : position + data.draw(st.integers(1, 9))]
        if not content:
            content = bytearray(b"\x80")
    root.content = bytes(content)
    _refused_or_harmless(parts.built(root=root.identity), shared_source, tmp_path_factory, take_in)


def _refused_or_harmless(data: bytes, source, factory: pytest.TempPathFactory, take_in) -> None:
    directory = factory.mktemp("fuzz")
    with Database(directory / "target.svcdb") as database:
        take_in(database, source.export(), promote=True)
        before = (database.head(), tuple(database.refs()), database.path.read_bytes())
        refusal = None
        try:
            take_in(database, data)
        except SvcError as error:
            refusal = error
        if refusal is not None:
            assert refusal.status in (400, 409), refusal
            assert (database.head(), tuple(database.refs()), database.path.read_bytes()) == before
        assert database.head().root == before[0].root
        assert verify(database).ok


def test_a_patch_whose_header_names_other_versions_is_refused(
    shared_source, target, refused, take_in
) -> None:
    take_in(target, shared_source.export(), promote=True)
    for at in (56, 88):
        data = bytearray(shared_source.patch())
        data[at : at + 32] = bytes(32)
        refused(sealed(bytes(data)) + bytes(data[128:]), force=True)
