"""Uploads in chunks for programs: one that was interrupted goes on where it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from msgspec import Struct

from svc.errors import InvalidInput
from svc.plugin import content_hasher, hash_content
from svc_client import Client
from svc_files.models import ChunkedFile, CommittedFile, FileBatch, HashesBody, WriteQuery
from svc_files.operations import check_chunks, commit_chunks, show_blob_config, store_chunk

__all__ = ["Upload", "upload_file"]

_CHUNK = 1024 * 1024
_HASHES_A_CHECK = 10_000
_ROUNDS = 3


class Upload(Struct, frozen=True):
    """What an upload did: the file, the version that it made, and how many bytes had to be sent."""

    file: CommittedFile
    version: str
    bytes_sent: int


def upload_file(
    client: Client,
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
        client: the server.
        path: where it goes.
        source: the file, opened in binary mode; it can be read from any place.
        content_type: media type; None lets the content and the name decide.
        message: text for the log.
        fork: the fork to write to; None means HEAD.
        progress: told (bytes done, bytes in all).

    Raises:
        InvalidInput: the file changed while it was sent.
    """
    step = min(_CHUNK, client.call(show_blob_config).chunk_size)
    source.seek(0)
    hashes, lengths, whole = [], [], content_hasher()
    while piece := source.read(step):
        whole.update(piece)
        hashes.append(hash_content(piece).hex())
        lengths.append(len(piece))
    total = sum(lengths)
    file = ChunkedFile(
        path=path, chunk_hashes=hashes, content_type=content_type, size=total, content_hash=whole.hexdigest()
    )
    sent = 0
    for last in (False,) * (_ROUNDS - 1) + (True,):
        sent += _send_missing(client, source, hashes, lengths, step, progress)
        try:
            done = client.call(commit_chunks, FileBatch([file], message), WriteQuery(fork=fork))
        except InvalidInput as error:
            # A collection may take a chunk that no file holds yet: it is sent again.
            if last or "missing" not in error.details:
                raise
            continue
        return Upload(done.committed[0], done.version, sent)
    raise AssertionError("the last round returns or raises")


def _send_missing(
    client: Client,
    source: BinaryIO,
    hashes: list[str],
    lengths: list[int],
    step: int,
    progress: Callable[[int, int], None] | None,
) -> int:
    needed = _needed(client, hashes)
    sent = done = 0
    total = sum(lengths)
    for number, (hash, length) in enumerate(zip(hashes, lengths, strict=True)):
        if hash in needed:
            needed.discard(hash)
            source.seek(number * step)
            content = source.read(length)
            if hash_content(content).hex() != hash:
                raise InvalidInput("The file changed while it was sent.")
            client.stream(store_chunk, hash, content=content).content()
            sent += length
        done += length
        if progress is not None:
            progress(done, total)
    return sent


def _needed(client: Client, hashes: list[str]) -> set[str]:
    wanted = list(dict.fromkeys(hashes))
    needed: set[str] = set()
    for start in range(0, len(wanted), _HASHES_A_CHECK):
        part = HashesBody(wanted[start : start + _HASHES_A_CHECK])
        needed.update(client.call(check_chunks, part).needed)
    return needed
