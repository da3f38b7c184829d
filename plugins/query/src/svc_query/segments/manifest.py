"""Which segments an index has: a few bytes that a database keeps beside its mark."""

from __future__ import annotations

import re
import secrets
from pathlib import Path as FilePath

import msgspec

from svc.errors import CorruptRecord

__all__ = [
    "EMPTY",
    "Manifest",
    "SegmentEntry",
    "decode_manifest",
    "encode_manifest",
    "new_name",
    "unused_files",
]

MANIFEST_FORMAT = 1
_NAME = re.compile(r"[0-9a-f]{16}\.seg(\.part)?")


class SegmentEntry(msgspec.Struct, frozen=True, array_like=True):
    """One segment, as a manifest names it.

    Attributes:
        name: of the file: 16 hexadecimal digits at random and ``.seg``.
        documents: how many have terms in it.
        first: the lowest of their numbers.
        last: the highest.
        terms: how many different ones.
        postings: pairs of term and document.
    """

    name: str
    size: int
    documents: int
    first: int
    last: int
    terms: int
    postings: int


class Manifest(msgspec.Struct, frozen=True, array_like=True):
    """All segments of an index, in the order in which they were written; ``format`` is of this layout."""

    format: int = MANIFEST_FORMAT
    segments: tuple[SegmentEntry, ...] = ()


_decoder = msgspec.msgpack.Decoder(Manifest)
_encoder = msgspec.msgpack.Encoder()

EMPTY = _encoder.encode(Manifest())
"""The manifest of an index without documents."""


def decode_manifest(stored: bytes | None) -> Manifest:
    """Reads a manifest; None stands for an empty one. CorruptRecord for another format, or none."""
    if stored is None:
        return Manifest()
    try:
        manifest = _decoder.decode(stored)
    except msgspec.MsgspecError as error:
        raise CorruptRecord("The manifest of an index can't be read.") from error
    if manifest.format != MANIFEST_FORMAT or not all(
        _NAME.fullmatch(entry.name) for entry in manifest.segments
    ):
        raise CorruptRecord("The manifest of an index can't be read.")
    return manifest


def encode_manifest(manifest: Manifest) -> bytes:
    """Returns a manifest as it is stored."""
    return _encoder.encode(manifest)


def new_name() -> str:
    """Returns a name that no file ever had."""
    return f"{secrets.token_hex(8)}.seg"


def unused_files(directory: FilePath, manifest: bytes | None) -> list[FilePath]:
    """Returns the segment files in a directory that a manifest does not name, also half-written ones.

    Only the one process that writes may remove them, between its flushes and merges. Another process that has
    one open goes on reading it.
    """
    used = {entry.name for entry in decode_manifest(manifest).segments}
    if not directory.is_dir():
        return []
    return sorted(
        path for path in directory.iterdir() if _NAME.fullmatch(path.name) and path.name not in used
    )
