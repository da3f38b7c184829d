"""Contents on their way: what the sender finds, and what the receiver asks for and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from svc.errors import InvalidInput, NotFound
from svc.plugin import (
    Database,
    Entry,
    EntryKind,
    Hash,
    Path,
    StoredContent,
    Version,
    format_path,
    hash_content,
)
from svc_sync.exchange.losers import Losers
from svc_sync.exchange.messages import ObjectsAnswer, ObjectsMessage

__all__ = ["INLINE_BYTES", "MOST_BYTES", "Fetcher", "Finder", "Inline", "answer_objects"]

SMALL_BYTES = 64 << 10
INLINE_BYTES = 1 << 20
MOST_CHUNKS = 64
MOST_BYTES = 4 << 20
"""So much is sent at once; and what of a first copy or a large file is brought anew after an interruption."""
MOST_HASHES = 8_192


class Finder:
    """Finds the contents that a node can send: what stands at a path, and what has lost there.

    Args:
        database: the database.
        version: the tree to look into.
    """

    def __init__(self, database: Database, version: Version) -> None:
        self._version = version
        self._losers = Losers(database)

    def find(self, path: Path, content: Hash) -> Entry | None:
        """Returns the file at a path with a content; None where it is gone by now."""
        entry = self._version.get(path)
        if entry is not None and entry.kind is EntryKind.FILE and entry.hash == content:
            return entry
        return self._losers.find(path, content)

    def read_all(self, entry: Entry) -> bytes:
        """Returns a whole content."""
        return self._version.read_all(entry)

    def chunks(self, entry: Entry) -> list[tuple[Hash, int]]:
        """Returns the chunks of a content."""
        return self._version.chunks(entry)


class Inline:
    """Small contents that travel with a page.

    Args:
        finder: finds them.
    """

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._size = 0
        self._hashes: set[Hash] = set()
        self.contents: list[bytes] = []

    def add(self, path: Path, value: Entry) -> bool:
        """Adds a content if it is small; returns whether there was room for it."""
        if (
            value.kind is not EntryKind.FILE
            or not 0 < value.size <= SMALL_BYTES
            or value.hash in self._hashes
        ):
            return True
        if self._size + value.size > INLINE_BYTES:
            return False
        entry = self._finder.find(path, value.hash)
        if entry is not None:
            self._hashes.add(value.hash)
            self._size += value.size
            self.contents.append(self._finder.read_all(entry))
        return True


def answer_objects(
    database: Database, finder: Finder, path: Path | None, message: ObjectsMessage, *, of_path: bool = False
) -> ObjectsAnswer:
    """Returns hashes of chunks, or the bytes of some.

    Args:
        database: the database.
        finder: finds the file.
        path: of the file.
        message: what is asked for.
        of_path: whether only chunks of the file may be asked for.

    Raises:
        NotFound: the file or a chunk is gone; the asker asks for the page again.
        InvalidInput: more is asked for than one request may.
    """
    if not message.hashes or of_path:
        hashes = _chunks_of(finder, path, message.content)
        first = max(0, message.first)
        part = hashes[first : first + MOST_HASHES]
        if not message.hashes:
            return ObjectsAnswer(hashes=part, has_more=first + len(part) < len(hashes))
        if not set(hashes).issuperset(message.hashes):
            raise NotFound("The file has no such chunk.")
    if len(message.hashes) > MOST_CHUNKS:
        raise InvalidInput(f"At most {MOST_CHUNKS} chunks are asked for at once.", limit=MOST_CHUNKS)
    chunks: list[bytes] = []
    size = 0
    for hash in message.hashes:
        chunk = database.chunk(hash)
        size += len(chunk)
        if chunks and size > MOST_BYTES:
            break
        chunks.append(chunk)
    return ObjectsAnswer(chunks=chunks)


def _chunks_of(finder: Finder, path: Path | None, content: Hash | None) -> list[Hash]:
    entry = None if path is None or content is None else finder.find(path, content)
    if entry is None:
        raise NotFound("The file has changed meanwhile.", path="" if path is None else format_path(path))
    return [hash for hash, _ in finder.chunks(entry)]


class Fetcher:
    """Brings contents that this database lacks from the node that named them, and checks them.

    Args:
        database: takes the contents.
        ask: sends a question about objects.
        inline: contents that came along.
    """

    def __init__(
        self,
        database: Database,
        ask: Callable[[ObjectsMessage], ObjectsAnswer],
        message: ObjectsMessage,
        inline: list[bytes],
    ) -> None:
        self._database = database
        self._ask = ask
        self._message = message
        self._inline = {hash_content(content): content for content in inline}
        self._stored: dict[Hash, StoredContent] = {}

    def __call__(self, path: Path, value: Entry) -> StoredContent:
        """Returns a content, stored.

        Raises:
            InvalidInput: the other node has sent another content than it had announced.
            NotFound: the other node has it no more.
        """
        stored = self._stored.get(value.hash)
        if stored is None:
            known = self._inline.get(value.hash)
            if known is not None:
                stored = self._database.store_bytes(known)
            else:
                stored = self._database.store(_Stream(self._pieces(path, value)))
            self._stored[value.hash] = stored
        if (stored.content_hash, stored.size) != (value.hash, value.size):
            del self._stored[value.hash]
            raise InvalidInput(
                "The other node has sent another content than it had announced.", path=format_path(path)
            )
        return stored

    def _pieces(self, path: Path, value: Entry) -> Iterator[bytes]:
        left = value.size
        waiting: list[Hash] = []
        for hash in self._hashes(path, value):
            waiting.append(hash)
            if len(waiting) == MOST_CHUNKS:
                for piece in self._chunks(path, value, waiting):
                    left -= len(piece)
                    yield _within(piece, left, path)
                waiting = []
        for piece in self._chunks(path, value, waiting):
            left -= len(piece)
            yield _within(piece, left, path)

    def _hashes(self, path: Path, value: Entry) -> Iterator[Hash]:
        first = 0
        while True:
            asked = replace(self._message, path=format_path(path), content=value.hash, first=first)
            answer = self._ask(asked)
            yield from answer.hashes
            first += len(answer.hashes)
            if not answer.has_more or not answer.hashes:
                return

    def _chunks(self, path: Path, value: Entry, hashes: list[Hash]) -> Iterator[bytes]:
        """Yields the bytes of chunks in order: those of this database, and those that are asked for.

        Those of a large file are kept as they come: who is interrupted finds them here.
        """
        missing = [hash for hash in dict.fromkeys(hashes) if not self._database.has_chunk(hash)]
        came: dict[Hash, bytes] = {}
        while missing:
            asked = replace(self._message, path=format_path(path), content=value.hash, hashes=missing)
            answer = self._ask(asked)
            if not answer.chunks or len(answer.chunks) > len(missing):
                raise InvalidInput("The other node does not send the chunks that it has named.")
            new = {hash_content(chunk): chunk for chunk in answer.chunks}
            if value.size > MOST_BYTES and new.keys() <= set(missing):
                self._database.put_chunks(new)
            came.update(new)
            missing = missing[len(answer.chunks) :]
        for hash in hashes:
            if hash not in came and not self._database.has_chunk(hash):
                raise InvalidInput("The other node has sent other chunks than it has named.")
            chunk = came[hash] if hash in came else self._database.chunk(hash)
            if not chunk:
                raise InvalidInput("The other node names chunks without a byte, of which there is no end.")
            yield chunk


def _within(piece: bytes, left: int, path: Path) -> bytes:
    if left < 0:
        raise InvalidInput(
            "The other node has sent another content than it had announced.", path=format_path(path)
        )
    return piece


class _Stream:
    """Pieces, read as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = 1 << 18, /) -> bytes:
        """Returns at most ``size`` bytes; empty at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = piece
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
