"""Whose chunks are whose: nobody reads or reuses a chunk on the strength of knowing its hash.

A caller may read a chunk that a file it may read holds, root too. It may make files of those, and of the
chunks that it has uploaded itself; root of every chunk. Who holds a chunk is a view of the commit feed; who
uploaded one is noted in a file beside the database, for a day. A chunk as a client cut it is as readable as
the database's own chunks that hold its bytes (``client_chunks``).
"""

from __future__ import annotations

import os
import random
import time
from functools import partial
from pathlib import Path as FilePath

from blake3 import blake3

from svc.errors import InvalidInput
from svc.plugin import (
    Call,
    Database,
    EntryKind,
    Hash,
    Operation,
    Path,
    Version,
    ViewStorage,
    in_turns,
)
from svc_files.chunk_holders import CHUNKS_VIEW, candidates
from svc_files.client_chunks import has_client_chunk, read_client_chunk

__all__ = [
    "has_chunk",
    "may_read_chunk",
    "may_use_chunk",
    "note_upload",
    "readable_chunk",
    "require_chunks",
]

UPLOAD_LIFETIME_S = 86_400

_SWEEP_ONE_IN = 64


def may_read_chunk(context: Call, hash: Hash) -> bool:
    """Whether a chunk is there, and a file at HEAD holds it that the caller may read."""
    if not context.database.has_chunk(hash):
        return False

    version = context.database.at()
    holds: dict[Hash, bool] = {}

    def find(storage: ViewStorage) -> bool:
        return any(
            context.may(Operation.READ, path) and _holds(version, path, hash, holds)
            for path in candidates(storage, hash)
        )

    return context.database.view(CHUNKS_VIEW).read(find)


def may_use_chunk(context: Call, hash: Hash) -> bool:
    """Whether the caller may make files of a chunk that is there: root may, others if they may read it."""
    database = context.database
    if context.identity.is_unrestricted_root:
        return database.has_chunk(hash) or has_client_chunk(database, hash, database.has_chunk)
    return may_read_chunk(context, hash) or has_client_chunk(database, hash, partial(may_read_chunk, context))


def readable_chunk(context: Call, hash: Hash) -> bytes | None:
    """Returns a chunk's bytes, if the caller may read a file at HEAD that holds them; else None."""
    if may_read_chunk(context, hash):
        return context.database.chunk(hash)
    return read_client_chunk(context.database, hash, partial(may_read_chunk, context))


def note_upload(context: Call, hash: Hash) -> None:
    """Notes that the caller has sent the bytes of a chunk, so that it may make files of it."""
    if context.identity.is_unrestricted_root:
        return
    note = _note(context, hash)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.touch()
    if random.randrange(_SWEEP_ONE_IN) == 0:
        _sweep(note.parent)


def require_chunks(context: Call, hashes: list[Hash]) -> None:
    """Raises InvalidInput, with the list of them, when there are chunks that the caller may not use."""
    missing = [hash.hex() for hash in in_turns(dict.fromkeys(hashes)) if not has_chunk(context, hash)]
    if missing:
        raise InvalidInput("Chunks are missing: upload them first.", missing=missing)


def has_chunk(context: Call, hash: Hash) -> bool:
    """Whether a chunk is there for the caller to make files of."""
    if _was_uploaded(context, hash) and context.database.has_chunk(hash):
        return True
    return may_use_chunk(context, hash)


def _holds(version: Version, path: Path, chunk: Hash, known: dict[Hash, bool]) -> bool:
    """Whether a file stands at a path that holds a chunk; ``known`` keeps the answer for each content."""
    entry = version.get(path)
    if entry is None or entry.kind is not EntryKind.FILE:
        return False
    if entry.record is None:
        return entry.hash == chunk
    holds = known.get(entry.record)
    if holds is None:
        holds = known[entry.record] = any(hash == chunk for hash, _ in version.chunks(entry))
    return holds


def _was_uploaded(context: Call, hash: Hash) -> bool:
    try:
        return _note(context, hash).stat().st_mtime > time.time() - UPLOAD_LIFETIME_S
    except OSError:
        return False


def _note(context: Call, hash: Hash) -> FilePath:
    identity = context.identity
    who = repr((identity.user_id, None if identity.user_id else identity.key_id))
    text = hash.hex()
    return _directory(context.database) / blake3(who.encode()).hexdigest()[:32] / text[:2] / text


def _directory(database: Database) -> FilePath:
    return database.state_directory / "files" / "uploads"


def _sweep(directory: FilePath) -> None:
    oldest = time.time() - UPLOAD_LIFETIME_S
    with os.scandir(directory) as notes:
        for note in notes:
            try:
                if note.stat().st_mtime < oldest:
                    os.unlink(note.path)
            except FileNotFoundError:
                continue
