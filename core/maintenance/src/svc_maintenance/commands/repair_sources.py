"""Where ``svc verify --repair`` takes whole copies from: files, and servers by their client."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from svc.errors import (
    AuthRequired,
    CorruptRecord,
    Forbidden,
    NotFound,
    PluginMissing,
    ServiceUnavailable,
    SvcError,
)
from svc.hashing import Hash
from svc_cli.source import Source, is_server_url
from svc_maintenance.repair import FileSource, RepairSource

__all__ = ["ServerSource", "open_source"]

_UNUSABLE = (NotFound, PluginMissing, Forbidden)


def open_source(text: str) -> RepairSource:
    """Opens a file, or a server with the credentials that are stored for it."""
    return ServerSource(text) if is_server_url(text) else FileSource(text)


class ServerSource:
    """A server that may hold the same contents: chunks by their hash, and versions as exports."""

    def __init__(self, url: str) -> None:
        self.name = url
        self._client: Any = Source(url).connect()
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._exports = 0

    def content(self, hash: Hash) -> bytes | None:
        """Asks for a chunk of a file at the server's HEAD; None where it has none or is of no use for that.

        AuthRequired and ServiceUnavailable are raised: to go on would lose what it may have.
        """
        try:
            content: bytes = self._client.request("GET", f"/blobs/{hash.hex()}").content()
        except _UNUSABLE:
            return None
        return content

    def fetch_version(self, root: Hash) -> FileSource | None:
        """Fetches an export of a version, with its directories; None where the server gives none."""
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="svc-repair-")
        self._exports += 1
        path = Path(self._directory.name, f"{self._exports}.svcdb")
        try:
            query = {"version": root.hex()}
            send = self._client.transport.request
            with (
                send("POST", "/versions/export", query=query, repeatable=True) as response,
                open(path, "wb") as file,
            ):
                file.writelines(response.pieces())
            return FileSource(path)
        except (AuthRequired, ServiceUnavailable):
            raise
        except (SvcError, CorruptRecord):
            path.unlink(missing_ok=True)
            return None

    def close(self) -> None:
        """Ends the connection, and removes what was fetched."""
        self._client.close()
        if self._directory is not None:
            self._directory.cleanup()
