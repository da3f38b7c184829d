"""Contents in chunks: an upload that was interrupted goes on where it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec

from svc.errors import InvalidInput
from svc.hashing import content_hasher, hash_content
from svc_client.models import BlobConfig, CommittedFile
from svc_client.transport import Transport

__all__ = ["Blobs", "ChunkedFile", "Upload"]

_CHUNK = 1024 * 1024
_HASHES_A_CHECK = 10_000
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class ChunkedFile:
    """A file that is to be made of chunks.

    Attributes:
        path: where.
        chunk_hashes: hex hashes in order.
        content_type: media type; None lets the content and the name decide.
        size: bytes, if they are to be verified.
        content_hash: hex hash of the whole, if it is to be verified.
        created_at: Unix milliseconds; None means now, or what it was.
        updated_at: Unix milliseconds; None means now.
    """

    path: str
    chunk_hashes: Sequence[str]
    content_type: str | None = None
    size: int | None = None
    content_hash: str | None = None
    created_at: int | None = None
    updated_at: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The members of the request."""
        members = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Upload:
    """What an upload did: the file, the version that it made, and how many bytes had to be sent."""

    file: CommittedFile
    version: str
    bytes_sent: int


class _Check(msgspec.Struct):
    have: list[str]
    needed: list[str]


class _Committed(msgspec.Struct):
    committed: list[CommittedFile]
    version: str


class Blobs:
    """``/blobs``: chunks by their BLAKE3 hash."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def config(self) -> BlobConfig:
        """Returns how the server takes chunks."""
        return self._transport.json("GET", "/blobs/config", BlobConfig)

    def missing(self, hashes: Iterable[str]) -> list[str]:
        """Returns those of some chunks that the server needs, each once."""
        wanted = list(dict.fromkeys(hashes))
        needed: list[str] = []
        for start in range(0, len(wanted), _HASHES_A_CHECK):
            value = {"hashes": wanted[start : start + _HASHES_A_CHECK]}
            needed += self._transport.json(
                "POST", "/blobs/check", _Check, value=value, repeatable=True
            ).needed
        return needed

    def put(self, hash: str, content: bytes) -> None:
        """Sends a chunk.

        Raises:
            InvalidInput: the bytes have another hash.
        """
        self._transport.request("PUT", f"/blobs/chunks/{hash}", body=content).json(dict[str, Any])

    def get(self, hash: str) -> bytes:
        """Returns a chunk that a file at HEAD holds.

        Raises:
            NotFound: there is none that the caller may read.
        """
        return self._transport.request("GET", f"/blobs/{hash}").content()

    def commit(
        self, files: Sequence[ChunkedFile], *, message: str | None = None, fork: str | None = None
    ) -> tuple[list[CommittedFile], str]:
        """Makes files of chunks, in one commit or not at all; returns them and the version.

        Raises:
            InvalidInput: chunks are missing; ``missing`` in the details names them.
        """
        value: dict[str, Any] = {"files": [file.as_json() for file in files]}
        if message is not None:
            value["message"] = message
        query = {} if fork is None else {"fork": fork}
        done = self._transport.json(
            "POST", "/blobs/commit", _Committed, query=query, value=value, repeatable=True
        )
        return done.committed, done.version

    def upload(
        self,
        path: str,
        source: BinaryIO,
        *,
        content_type: str | None = None,
        message: str | None = None,
        fork: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Upload:
        """Stores a file of this machine in chunks, and sends only those that the server needs.

        An upload that was interrupted is taken up by calling this again: what arrived is not sent again.
        The file is read twice; one that changes meanwhile is refused by its hash.

        Args:
            path: where it goes.
            source: the file, opened in binary mode; it can be read from any place.
            content_type: media type; None lets the content and the name decide.
            message: text for the log.
            fork: the fork to write to; None means HEAD.
            progress: told (bytes done, bytes in all).

        Raises:
            InvalidInput: the file changed while it was sent.
        """
        step = min(_CHUNK, self.config().chunk_size)
        source.seek(0)
        hashes, lengths, whole = [], [], content_hasher()
        while piece := source.read(step):
            whole.update(piece)
            hashes.append(hash_content(piece).hex())
            lengths.append(len(piece))
        total = sum(lengths)
        file = ChunkedFile(
            path, hashes, content_type=content_type, size=total, content_hash=whole.hexdigest()
        )
        sent = 0
        for last in (False,) * (_ROUNDS - 1) + (True,):
            sent += self._send_missing(source, hashes, lengths, step, progress)
            try:
                [made], version = self.commit([file], message=message, fork=fork)
            except InvalidInput as error:
                # A collection may take a chunk that no file holds yet: it is sent again.
                if last or "missing" not in error.details:
                    raise
                continue
            return Upload(made, version, sent)
        raise AssertionError("the last round returns or raises")

    def _send_missing(
        self,
        source: BinaryIO,
        hashes: list[str],
        lengths: list[int],
        step: int,
        progress: Callable[[int, int], None] | None,
    ) -> int:
        needed = set(self.missing(hashes))
        sent = done = 0
        total = sum(lengths)
        for number, (hash, length) in enumerate(zip(hashes, lengths, strict=True)):
            if hash in needed:
                needed.discard(hash)
                source.seek(number * step)
                content = source.read(length)
                if hash_content(content).hex() != hash:
                    raise InvalidInput("The file changed while it was sent.")
                self.put(hash, content)
                sent += length
            done += length
            if progress is not None:
                progress(done, total)
        return sent
