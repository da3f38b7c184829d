"""Chunks as clients cut them: where the bytes of each lie in a content that the database cut anew.

A content has one cut, the database's own, so that the same content is the same version however it came in.
What a client sent in other pieces is noted beside it: in the system tree, in the commit that makes the file.
A view finds such a chunk by its hash, as a part of the database's own chunks; whoever may read those may read
it, and whoever reads it gets bytes that have that hash.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import accumulate, islice

import msgspec
from blake3 import blake3

from svc.errors import CorruptRecord, NotFound
from svc.plugin import (
    EMPTY_ROOT,
    HASH_SIZE,
    Commit,
    Database,
    Entry,
    EntryKind,
    Hash,
    StoredContent,
    Transaction,
    Version,
    View,
    ViewStorage,
    hash_content,
    pause,
)

__all__ = [
    "CLIENT_CHUNKS_VIEW",
    "NOTES",
    "ClientChunksView",
    "has_client_chunk",
    "note_client_chunks",
    "read_client_chunk",
    "restore_client_chunks",
]

CLIENT_CHUNKS_VIEW = "files.client-chunks"
NOTES = ("files", "client-chunks")
"""Directory of the system tree with a note for each content and cut: ``<content hash>-<hash of the cut>``."""

_CHUNK = struct.Struct(f"<{HASH_SIZE}sQI")
_PLACE = struct.Struct("<II")
_MAXIMUM_PLACES = 1000
_PAUSE_EVERY = 1024
_ROWS_PER_STEP = 1024


class CutNote(msgspec.Struct, frozen=True, array_like=True):
    """How a client cut a content.

    Attributes:
        record: hash of the file record of the database's own cut; None where that is one chunk.
        chunks: for each of the client's chunks, without repetition and without those that are the database's
            own: hash, offset in the content (8 bytes, little endian), length (4 bytes).
    """

    size: int
    record: Hash | None
    chunks: bytes


class ClientChunksView(View):
    """Follows the commit feed and keeps where the chunks of the notes lie in the database's own chunks."""

    name = CLIENT_CHUNKS_VIEW
    format = 1

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> Generator[None]:
        """Takes the notes of one commit in, a bounded number of rows a step."""
        if commit.system_root == commit.parent_system_root:
            return
        rows = _rows(commit, after)
        step = 0
        while piece := list(islice(rows, _ROWS_PER_STEP)):
            step += 1
            if step > start:
                for key, value in piece:
                    storage.put(key, value)
                yield


def note_client_chunks(
    transaction: Transaction, database: Database, content: StoredContent, hashes: Iterable[Hash]
) -> None:
    """Notes, with the content that they make up, those of its chunks that the database cut otherwise."""
    known = {hash for hash, _ in content.cut} or {content.content_hash}
    rows = bytearray()
    offset = 0
    for number, hash in enumerate(hashes):
        if number % _PAUSE_EVERY == _PAUSE_EVERY - 1:
            pause()
        length = database.chunk_size(hash)
        if hash not in known:
            known.add(hash)
            rows += _CHUNK.pack(hash, offset, length)
        offset += length
    if not rows:
        return
    path = (*NOTES, f"{content.content_hash.hex()}-{blake3(rows).hexdigest(length=8)}")
    if database.system().get(path) is None:
        note = CutNote(content.size, content.record, bytes(rows))
        transaction.put_system(path, msgspec.msgpack.encode(note))


def has_client_chunk(database: Database, hash: Hash, allowed: Callable[[Hash], bool]) -> bool:
    """Whether a chunk lies in chunks of the database that are all allowed."""
    return _find(database, hash, allowed) is not None


def read_client_chunk(database: Database, hash: Hash, allowed: Callable[[Hash], bool]) -> bytes | None:
    """Returns a chunk's bytes, out of chunks of the database that are all allowed; None if there are none."""
    place = _find(database, hash, allowed)
    if place is None:
        return None
    skip, length, chunks = place
    content = b"".join(map(database.chunk, chunks))[skip : skip + length]
    return content if hash_content(content) == hash else None


def restore_client_chunks(database: Database, hashes: Iterable[Hash]) -> None:
    """Stores chunks again of which only the places are left, so that files can be made of them.

    What is not even noted is left to who reads them. Who may use them was asked before.
    """
    for hash in dict.fromkeys(hashes):
        if not database.has_chunk(hash):
            content = read_client_chunk(database, hash, database.has_chunk)
            if content is not None:
                database.put_chunks({hash: content})


def _rows(commit: Commit, after: Version) -> Iterator[tuple[bytes, bytes]]:
    system = after.sibling(commit.system_root)
    notes, known = system.get(NOTES), after.sibling(commit.parent_system_root).get(NOTES)
    if notes is None or (known is not None and known.hash == notes.hash):
        return
    # By the trees: the commit at the horizon of a collection brings all notes, and names none.
    before = after.sibling(EMPTY_ROOT if known is None else known.hash)
    for name, _, note in before.differences(after.sibling(notes.hash)):
        if note is not None:
            yield from _rows_of_note(name, system, after)


def _rows_of_note(name: str, system: Version, user: Version) -> Iterator[tuple[bytes, bytes]]:
    entry = system.get((*NOTES, name))
    if entry is None:
        return
    note = msgspec.msgpack.decode(system.read_all(entry), type=CutNote)
    content = bytes.fromhex(name.partition("-")[0])
    file = Entry(EntryKind.FILE, content, note.size, 0, 0, None, note.record, None)
    try:
        cut = user.chunks(file)
    except (NotFound, CorruptRecord):
        return  # the content was collected, or its record is damaged: nothing can be read out of it
    starts = [0, *accumulate(length for _, length in cut)]
    for hash, offset, length in _CHUNK.iter_unpack(note.chunks):
        first = bisect_right(starts, offset) - 1
        last = bisect_right(starts, offset + length - 1)
        place = _PLACE.pack(offset - starts[first], length)
        yield hash + content, place + b"".join(own for own, _ in cut[first:last])


def _find(
    database: Database, hash: Hash, allowed: Callable[[Hash], bool]
) -> tuple[int, int, list[Hash]] | None:
    """Returns a place of a chunk: bytes to skip, its length, and the chunks that hold it, all allowed."""
    answers: dict[Hash, bool] = {}
    view = database.view(CLIENT_CHUNKS_VIEW)
    for skip, length, chunks in view.read(lambda storage: _places(storage, hash)):
        for own in chunks:
            if own not in answers:
                answers[own] = allowed(own)
            if not answers[own]:
                break
        else:
            return skip, length, chunks
    return None


def _places(storage: ViewStorage, hash: Hash) -> list[tuple[int, int, list[Hash]]]:
    return [_place(value) for _, value in islice(storage.scan(hash), _MAXIMUM_PLACES)]


def _place(value: bytes) -> tuple[int, int, list[Hash]]:
    skip, length = _PLACE.unpack_from(value)
    return skip, length, list(_hashes(value[_PLACE.size :]))


def _hashes(joined: bytes) -> Iterator[Hash]:
    return (joined[start : start + HASH_SIZE] for start in range(0, len(joined), HASH_SIZE))
