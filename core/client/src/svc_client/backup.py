"""Versions that leave a server as files, and come into one. Root's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

import msgspec

from svc.errors import ServiceUnavailable
from svc_client.models import ImportReport
from svc_client.transport import Body, Response, Transport

__all__ = ["Backup", "BackupStream", "Promoted"]

_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class BackupStream:
    """A file of a version on its way, read to its end or an error; a context closes it.

    Attributes:
        size: bytes in all.
        version: hex root hash of the version that it holds, or leads to.
        report: what it holds, as the server reports of a file that it writes itself.
    """

    def __init__(self, response: Response, form: type[_Export | _Patch]) -> None:
        self._response = response
        self.version = response.header("X-Svc-Version")
        try:
            self.report = msgspec.json.decode(response.header("X-Svc-Report"), type=dict[str, Any])
            told = msgspec.convert(self.report, form)
        except (msgspec.DecodeError, RecursionError):
            raise response.foreign() from None
        if self.version != told.leads_to:
            raise response.foreign()
        self.size = told.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def __iter__(self) -> Iterator[bytes]:
        left = self.size
        for piece in self._response.pieces():
            left -= len(piece)
            yield piece
        if left:
            raise ServiceUnavailable("The server sent another number of bytes than it said.")


class _Export(msgspec.Struct):
    files: int
    links: int
    chunks: int
    directories: int
    size: int
    version: _Hash

    @property
    def leads_to(self) -> str:
        return self.version


class _Patch(msgspec.Struct):
    files_added: int
    files_modified: int
    files_deleted: int
    chunks: int
    directories: int
    size: int
    source: _Hash = msgspec.field(name="from")
    to: _Hash

    @property
    def leads_to(self) -> str:
        return self.to


class Promoted(msgspec.Struct, frozen=True):
    """What HEAD is, and what it was before, in hex."""

    head: str
    previous: str


class Backup:
    """``/versions/export``, ``diff``, ``import`` and ``promote``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def export(
        self, *, snapshot: str | None = None, version: str | None = None, at: str | None = None
    ) -> BackupStream:
        """Opens an export of a snapshot, a root hash, or HEAD at a time; of HEAD without any.

        Raises:
            NotFound: there is no such version.
        """
        return self._stream("/versions/export", _Export, {"snapshot": snapshot, "version": version, "at": at})

    def patch(self, source: str, to: str = "HEAD") -> BackupStream:
        """Opens a patch that leads from one version to another, each named in any way.

        Raises:
            NotFound: a name means no version.
        """
        return self._stream("/versions/diff", _Patch, {"from": source, "to": to})

    def import_file(
        self, body: Body, *, size: int | None = None, promote: bool = False, force: bool = False
    ) -> ImportReport:
        """Takes an export or a patch in; HEAD stays where it is unless it is promoted.

        Args:
            body: the file: bytes, a function that starts it anew, or an iterable.
            size: its bytes, where it is not ``bytes``.
            promote: make the imported version HEAD.
            force: apply a patch although HEAD is not the version that it was made from.

        Raises:
            InvalidInput: it is damaged, forged or foreign; nothing of it was taken.
            Conflict: HEAD is not the version that the patch was made from.
        """
        headers = {"Content-Type": "application/octet-stream"}
        if isinstance(body, bytes):
            size = len(body)
        if size is not None:
            headers["Content-Length"] = str(size)
        flags = {"promote": promote, "force": force}
        response = self._transport.request(
            "POST",
            "/versions/import",
            query={name: "true" for name, wanted in flags.items() if wanted},
            headers=headers,
            body=body,
        )
        return response.json(ImportReport)

    def promote(self, version: str) -> Promoted:
        """Makes a version HEAD."""
        return self._transport.json("POST", "/versions/promote", Promoted, value={"hash": version})

    def _stream(self, url: str, form: type[_Export | _Patch], query: Mapping[str, Any]) -> BackupStream:
        given = {name: value for name, value in query.items() if value is not None}
        response = self._transport.request("POST", url, query=given, repeatable=True)
        try:
            return BackupStream(response, form)
        except BaseException:
            response.close()
            raise
