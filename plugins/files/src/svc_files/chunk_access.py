"""Whose chunks are whose: nobody reads or reuses a chunk on the strength of knowing its hash.

A caller may read a chunk that a file it may read holds, root too. It may make files of those, and of the
chunks that it has uploaded itself; root of every chunk. Who holds a chunk is a view of the commit feed; who
uploaded one is noted in a file beside the database, for a day.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path as FilePath

from blake3 import blake3

from svc.database import Commit, Database, Version, ViewStorage
from svc.errors import InvalidInput
from svc.hashing import HASH_SIZE, Hash
from svc.paths import Path
from svc.pipeline import RequestContext, is_unrestricted_root
from svc.plugins import Operation
from svc.tree import Entry, EntryKind
from svc_files.deleted_view import path_key

__all__ = [
    "CHUNKS_VIEW",
    "ChunkHoldersView",
    "has_chunk",
    "may_read_chunk",
    "may_use_chunk",
    "note_upload",
    "require_chunks",
]

CHUNKS_VIEW = "files.chunks"
UPLOAD_LIFETIME_S = 86_400

_MAXIMUM_HOLDERS = 10_000
_SWEEP_ONE_IN = 64


class ChunkHoldersView:
    """Follows the commit feed and keeps, for every chunk at HEAD, the paths of the files that hold it."""

    name = CHUNKS_VIEW
    format = 1

    def apply(self, commit: Commit, before: Version, after: Version, storage: ViewStorage) -> None:
        """Takes one commit in; a function of the two trees."""
        if commit.root == commit.parent_root:
            return
        for change in before.diff(after):
            for key in _keys(before, change.path, change.before):
                storage.delete(key)
            for key in _keys(after, change.path, change.after):
                storage.put(key, b"")


def may_read_chunk(context: RequestContext, hash: Hash) -> bool:
    """Whether a chunk is there, and a file at HEAD holds it that the caller may read."""
    if not context.database.has_chunk(hash):
        return False

    def find(storage: ViewStorage) -> bool:
        return any(
            context.may(Operation.READ, path) for path in islice(_holders(storage, hash), _MAXIMUM_HOLDERS)
        )

    return context.database.view(CHUNKS_VIEW).read(find)


def may_use_chunk(context: RequestContext, hash: Hash) -> bool:
    """Whether the caller may make files of a chunk that is there: root may, others if they may read it."""
    if is_unrestricted_root(context.identity):
        return context.database.has_chunk(hash)
    return may_read_chunk(context, hash)


def note_upload(context: RequestContext, hash: Hash) -> None:
    """Notes that the caller has sent the bytes of a chunk, so that it may make files of it."""
    if is_unrestricted_root(context.identity):
        return
    note = _note(context, hash)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.touch()
    if random.randrange(_SWEEP_ONE_IN) == 0:
        _sweep(note.parent)


def require_chunks(context: RequestContext, hashes: list[Hash]) -> None:
    """Raises InvalidInput, with the list of them, when there are chunks that the caller may not use."""
    missing = [hash.hex() for hash in dict.fromkeys(hashes) if not has_chunk(context, hash)]
    if missing:
        raise InvalidInput("Chunks are missing: upload them first.", missing=missing)


def has_chunk(context: RequestContext, hash: Hash) -> bool:
    """Whether a chunk is there for the caller to make files of."""
    if _was_uploaded(context, hash) and context.database.has_chunk(hash):
        return True
    return may_use_chunk(context, hash)


def _keys(version: Version, path: Path, entry: Entry | None) -> Iterator[bytes]:
    if entry is None or entry.kind is not EntryKind.FILE:
        return
    ending = path_key(path)
    for hash, _ in version.chunks(entry):
        yield hash + ending


def _holders(storage: ViewStorage, hash: Hash) -> Iterator[Path]:
    for key, _ in storage.scan(hash):
        yield tuple(key[HASH_SIZE:].decode("utf-8").split("\0")[:-1])


def _was_uploaded(context: RequestContext, hash: Hash) -> bool:
    try:
        return _note(context, hash).stat().st_mtime > time.time() - UPLOAD_LIFETIME_S
    except OSError:
        return False


def _note(context: RequestContext, hash: Hash) -> FilePath:
    identity = context.identity
    who = repr((identity.user_id, None if identity.user_id else identity.key_id))
    text = hash.hex()
    return _directory(context.database) / blake3(who.encode()).hexdigest()[:32] / text[:2] / text


def _directory(database: Database) -> FilePath:
    return database.state_directory / "files" / "uploads"


def _sweep(directory: FilePath) -> None:
    """Removes the notes of a directory that are too old to count."""
    oldest = time.time() - UPLOAD_LIFETIME_S
    with os.scandir(directory) as notes:
        for note in notes:
            try:
                if note.stat().st_mtime < oldest:
                    os.unlink(note.path)
            except FileNotFoundError:
                continue
