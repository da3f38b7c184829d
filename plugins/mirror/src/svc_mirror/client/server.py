"""The server of a mirror: what it has, chunks of it, and writes under conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cbor2

from svc.errors import InvalidInput, InvalidPath, NotFound, ServiceUnavailable, UsageError
from svc.plugin import HASH_SIZE, content_hasher, format_path, parse_hash, parse_path
from svc_client import Client
from svc_files.api import (
    AnyOperation,
    BatchBody,
    BatchResult,
    LinkBody,
    LinkDescription,
    batch,
    make_link,
)
from svc_mirror.client.state import State
from svc_mirror.client.values import Kind, Remote
from svc_mirror.models import ChunksQuestion, DiffPage, DiffQuestion, FileState, GonePath, LinkState
from svc_mirror.operations import read_changes, read_chunks

__all__ = ["Server", "packed_chunks", "unpacked_chunks"]

_CBOR = {"Accept": "application/cbor"}
_SIZE = 4
_LARGEST_CHUNK = 16 << 20


class Server:
    """A directory of a server; methods block, and raise what the server answers.

    Args:
        client: asks the server.
        directory: the directory, as text with a slash before each name.
    """

    def __init__(self, client: Client, directory: str) -> None:
        self._client = client
        self.directory = format_path(parse_path(directory))
        self._above = self.directory.rstrip("/") + "/"

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._client.address.url

    def path_of(self, path: str) -> str:
        """Returns a path of the mirror as a path of the database."""
        return self._above + path

    def fetch_changes(self, state: State, took: Callable[[], None] = lambda: None) -> None:
        """Brings what is known of the server up to date, page by page; ``took`` is called behind each.

        A server with another database, or with an older copy of it, never had what both had: that is
        forgotten, and everything is compared anew, as at a first run.

        Raises:
            NotFound: the server does not have the plugin.
        """
        has_more, asks_anew = True, False
        while has_more:
            token = None if asks_anew else state.fact("token")
            question = DiffQuestion(paths=[self._above + "**"], since=token)
            try:
                page = self._client.call(read_changes, question)
            except (InvalidInput, NotFound) as error:
                is_foreign = error.details.get("field") == "since"
                is_stale = is_foreign or error.details.get("collected")
                if isinstance(error, NotFound) and not is_stale:
                    raise NotFound(
                        f"{self.url} does not tell what changed: 'svc plugins enable mirror' lets it.",
                        **error.details,
                    ) from error
                if token is None or not is_stale:
                    raise
                if is_foreign:
                    state.forget()
                asks_anew = True
                continue
            self._take(state, page)
            asks_anew = False
            has_more = page.has_more
            took()

    def _take(self, state: State, page: DiffPage) -> None:
        changes = page.changes
        with state.transaction():
            generation = state.generation
            if page.is_first and page.is_whole:
                generation += 1
                state.set_fact("generation", str(generation))
            gone: Sequence[GonePath]
            for gone in (changes.files_deleted, changes.symlinks_deleted, changes.directories_deleted):
                for one in gone:
                    self._set(state, one.path, None, generation)
            for one in changes.directories_added:
                self._set(state, one.path, Remote(Kind.DIRECTORY, ""), generation)
            for link in (*changes.symlinks_added, *changes.symlinks_modified):
                self._set(state, link.path, _remote_link(link), generation)
            for file in (*changes.files_added, *changes.files_modified):
                self._set(state, file.path, _remote_file(file), generation)
            if page.is_whole and not page.has_more:
                state.forget_older(generation)
            state.set_fact("token", page.since)

    def _set(self, state: State, path: str, entry: Remote | None, generation: int) -> None:
        try:
            plain = format_path(parse_path(path))
        except InvalidPath:
            raise self._foreign() from None
        if plain == self.directory:
            if entry is not None and entry.kind is not Kind.DIRECTORY:
                raise UsageError(f"{path} of the server is no directory.")
        elif plain.startswith(self._above):
            # A star in the name of the directory is one in the glob: it fits others too.
            state.set_remote(plain[len(self._above) :], entry, generation)

    def name_chunks(self, path: str, content_hash: str) -> Iterator[tuple[bytes, int]]:
        """Yields hashes and sizes of a file's chunks; PreconditionFailed where it has another content."""
        first, has_more = 0, True
        while has_more:
            answer = self._ask(
                ChunksQuestion(path=self.path_of(path), content_hash=content_hash, first=first)
            )
            hashes, sizes = answer.get("chunk_hashes"), answer.get("chunk_sizes")
            if not isinstance(hashes, list) or not isinstance(sizes, list) or len(hashes) != len(sizes):
                raise self._foreign()
            for text, size in zip(hashes, sizes, strict=True):
                hash = parse_hash(text) if isinstance(text, str) else None
                if hash is None or not isinstance(size, int) or not 0 < size <= _LARGEST_CHUNK:
                    raise self._foreign()
                yield hash, size
            first += len(hashes)
            has_more = bool(answer.get("has_more")) and bool(hashes)

    def read_chunks(self, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the chunks that may be read, by their hashes, which they have."""
        found: dict[bytes, bytes] = {}
        missing: set[str] = set()
        wanted = [hash.hex() for hash in dict.fromkeys(hashes)]
        while wanted:
            answer = self._ask(ChunksQuestion(hashes=wanted))
            count = len(found) + len(missing)
            try:
                missing.update(answer["missing"])
                for chunk in answer["chunks"]:
                    hasher = content_hasher()
                    hasher.update(chunk["data"])
                    if hasher.hexdigest() != chunk["hash"]:
                        raise self._foreign()
                    found[bytes.fromhex(chunk["hash"])] = chunk["data"]
            except (KeyError, TypeError, ValueError):
                raise self._foreign() from None
            if len(found) + len(missing) == count:
                raise self._foreign()
            wanted = [text for text in wanted if text not in missing and bytes.fromhex(text) not in found]
        return found

    def _ask(self, question: ChunksQuestion) -> dict[str, Any]:
        with self._client.stream(read_chunks, question, headers=_CBOR) as response:
            payload = response.content()
        try:
            answer = cbor2.loads(payload)
        except (cbor2.CBORDecodeError, ValueError, RecursionError):
            raise self._foreign() from None
        if not isinstance(answer, dict):
            raise self._foreign()
        return answer

    def write(self, operations: list[AnyOperation]) -> BatchResult:
        """Does many writes in one commit, or none. Each has a condition, so that it may be sent again."""
        return self._client.stream(batch, BatchBody(operations, "svc mirror"), repeatable=True).json(
            BatchResult
        )

    def store(
        self,
        path: str,
        start: Callable[[], Iterator[bytes]],
        size: int,
        updated_ms: int,
        there: Remote | None,
    ) -> str:
        """Stores a large file in the place of what is known there; returns its content hash."""
        stored = self._client.files.put(
            self.path_of(path),
            start,
            size=size,
            if_match=None if there is None else there.hash,
            create_only=there is None,
            updated_at=updated_ms,
        )
        return stored.content_hash

    def store_link(self, path: str, target: str, there: Remote | None) -> None:
        """Stores a link in the place of what is known there."""
        condition = {"If-None-Match": "*"} if there is None else {"If-Match": f'"{there.hash}"'}
        place = parse_path(self.path_of(path))
        self._client.stream(make_link, place, LinkBody(target), headers=condition).json(LinkDescription)

    def _foreign(self) -> ServiceUnavailable:
        return ServiceUnavailable(f"{self.url} does not answer as an svc server does.")


def packed_chunks(chunks: Sequence[tuple[bytes, int]]) -> bytes:
    """Returns chunks as the state keeps them."""
    return b"".join(hash + size.to_bytes(_SIZE, "big") for hash, size in chunks)


def unpacked_chunks(packed: bytes) -> list[tuple[bytes, int]]:
    """Returns hashes and sizes of chunks that the state keeps."""
    width = HASH_SIZE + _SIZE
    return [
        (packed[at : at + HASH_SIZE], int.from_bytes(packed[at + HASH_SIZE : at + width], "big"))
        for at in range(0, len(packed), width)
    ]


def _remote_link(link: LinkState) -> Remote:
    return Remote(Kind.LINK, link.hash, target=link.target, updated_ms=link.updated_at)


def _remote_file(file: FileState) -> Remote:
    chunks = None
    if file.chunk_hashes is not None and file.chunk_sizes is not None:
        hashes = map(bytes.fromhex, file.chunk_hashes)
        chunks = packed_chunks(list(zip(hashes, file.chunk_sizes, strict=True)))
    return Remote(
        Kind.FILE,
        file.hash,
        file.size,
        updated_ms=file.updated_at,
        is_readable=file.is_readable,
        chunks=chunks,
    )
