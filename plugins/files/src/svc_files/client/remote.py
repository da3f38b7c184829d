"""The files of a database behind a server, over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from http.client import HTTPResponse
from typing import Any
from urllib.parse import unquote

import msgspec

from svc.database import parse_time
from svc.errors import InternalError, InvalidInput, InvalidPath, NotFound, ServiceUnavailable, SvcError
from svc.hashing import content_hasher, parse_hash
from svc.paths import Path, format_path, parse_path
from svc.tree import EntryKind
from svc_files.client.connection import Connections, ServerAddress, file_url, json_of
from svc_files.client.remote_import import RemoteImporter, put_headers
from svc_files.client.source import ByteReader
from svc_files.client.store import FileInfo, ImportListener, ImportOptions, PutOptions, ReadPoint, Stored

__all__ = ["RemoteStore"]

_PAGE = 1000
_PIECE = 1024 * 1024
_KINDS = {"file": EntryKind.FILE, "directory": EntryKind.DIRECTORY, "symlink": EntryKind.SYMLINK}


class RemoteStore:
    """The files that a server serves.

    Args:
        address: the server, and the token for it.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._connections = Connections(address)

    @property
    def label(self) -> str:
        """The server's URL."""
        return self._connections.address.url

    def pin(self, point: ReadPoint) -> str:
        """Returns the hex root hash that a read point means now.

        Raises:
            InvalidInput: the version is not a hash in hex.
            NotFound: there is no such snapshot, version or fork, or ``at`` names none.
        """
        if point.at is not None and point == ReadPoint(at=point.at):
            return self._pin_named(point.at)
        query = {
            name: value
            for name, value in (
                ("snapshot", point.snapshot),
                ("version", point.version),
                ("fork", point.fork),
            )
            if value is not None
        }
        return _header(self._head((), query), "X-Svc-Version")

    def _pin_named(self, name: str) -> str:
        """The version of a name of any kind, asked for in the order in which a database file is."""
        for query in named_point_queries(name):
            try:
                return _header(self._head((), query), "X-Svc-Version")
            except (NotFound, InvalidInput):
                continue
        raise NotFound(
            "This names no version: it is no snapshot, no fork (forks/<name>), no hash of 64 hex digits, "
            "no time with a commit before it and not HEAD.",
            version=name[:200],
        )

    def stat(self, path: Path, version: str | None = None, *, follow: bool = True) -> FileInfo:
        """Describes what stands at a path; see ``FileStore.stat``."""
        query = _at(version)
        if not follow:
            query["nofollow"] = "true"
        info = _info_of_headers(self._head(path, query))
        if info.kind is not EntryKind.DIRECTORY:
            return info
        # The total of a listing of everything below is the number of files, and costs one entry.
        below = {**_at(version), "depth": "-1", "limit": "1"}
        listing = self._json("GET", file_url("/files/", info.path), query=below)
        total = listing.get("total") if isinstance(listing, dict) else None
        return replace(info, file_count=total if isinstance(total, int) else None)

    def children(self, path: Path, version: str | None = None) -> Iterator[FileInfo]:
        """Yields a directory's entries in order of their names, page by page."""
        query = {**_at(version), "limit": str(_PAGE)}
        while True:
            listing = self._json("GET", file_url("/files/", path), query=query)
            items, cursor = _listing(listing)
            for item in items:
                yield _info_of_item(item, path)
            if cursor is None:
                return
            query["after"] = cursor

    def read(
        self, info: FileInfo, version: str | None = None, *, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        """Yields a file's bytes; see ``FileStore.read``."""
        wanted = info.size - start if length is None else min(length, info.size - start)
        if wanted <= 0:
            return
        headers = {"If-Match": f'"{info.hash}"'}
        partial = start > 0 or wanted < info.size
        if partial:
            headers["Range"] = f"bytes={start}-{start + wanted - 1}"
        response = self._connections.request(
            "GET", file_url("/files/", info.path), query=_at(version), headers=headers
        )
        finished = False
        try:
            if partial and response.status != 206:
                raise ServiceUnavailable(f"{self.label} does not serve ranges.")
            while piece := self._connections.read(response):
                wanted -= len(piece)
                yield piece
            finished = True
        finally:
            if not finished:
                self._connections.drop()
        if wanted:
            raise ServiceUnavailable(f"{self.label} sent another number of bytes than the file has.")

    def put(self, path: Path, body: ByteReader, size: int | None, options: PutOptions) -> Stored:
        """Stores one file in one commit; see ``FileStore.put``."""
        headers = put_headers(options, size)
        hasher = content_hasher()

        def pieces() -> Iterable[bytes]:
            while piece := body.read(_PIECE):
                hasher.update(piece)
                yield piece

        response = self._connections.request(
            "PUT", file_url("/files/", path), headers=headers, body=pieces, repeatable=False
        )
        answer = json_of(self._connections, response)
        try:
            info = FileInfo(
                parse_path(answer["path"]),
                EntryKind.FILE,
                answer["content_hash"],
                answer["size"],
                answer["created_at"],
                answer["updated_at"],
                answer["content_type"],
            )
            version = str(answer["version"])
        except (KeyError, TypeError):
            raise _foreign(self.label) from None
        if info.hash != hasher.hexdigest():
            raise InternalError("The server stored other bytes than it was sent.", path=format_path(path))
        return Stored(info, response.status == 201, version)

    def remove(self, paths: Sequence[Path], *, recursive: bool, if_match: str | None = None) -> str:
        """Removes entries and returns the version: one request for one path, else one batch."""
        if len(paths) == 1 or if_match is not None:
            version = ""
            for path in paths:
                answer = self._json(
                    "DELETE",
                    file_url("/files/", path),
                    query={"recursive": "true"} if recursive else None,
                    headers={"If-Match": f'"{if_match}"'} if if_match is not None else None,
                    repeatable=False,
                )
                version = str(answer.get("version", "")) if isinstance(answer, dict) else ""
            return version
        operations = [{"op": "delete", "path": format_path(path), "recursive": recursive} for path in paths]
        answer = self._json(
            "POST",
            "/files/batch",
            headers={"Content-Type": "application/json"},
            body=msgspec.json.encode({"operations": operations}),
            repeatable=False,
        )
        return str(answer.get("version", "")) if isinstance(answer, dict) else ""

    def importer(self, options: ImportOptions, listener: ImportListener) -> RemoteImporter:
        """Opens an import of many files over several connections."""
        return RemoteImporter(self._connections, options, listener)

    def is_own_file(self, device: int, inode: int) -> bool:
        """Always False: what the server stores lies elsewhere."""
        return False

    def close(self) -> None:
        """Closes all connections."""
        self._connections.close()

    def _head(self, path: Path, query: Mapping[str, str]) -> HTTPResponse:
        try:
            response = self._connections.request("HEAD", file_url("/files/", path), query=query)
        except SvcError as error:
            # An answer to HEAD has no body that could say more than its status.
            if not isinstance(error, ServiceUnavailable) and error.exit_code != 5:
                return self._explained(path, query, error)
            raise
        response.read()
        return response

    def _explained(self, path: Path, query: Mapping[str, str], error: SvcError) -> HTTPResponse:
        if isinstance(error, NotFound) and not query:
            raise NotFound("Nothing is at this path.", path=format_path(path)) from error
        response = self._connections.request("GET", file_url("/files/", path), query={**query, "limit": "1"})
        self._connections.drop()
        return response

    def _json(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        repeatable: bool = True,
    ) -> Any:
        response = self._connections.request(
            method, url, query=query, headers=headers, body=body, repeatable=repeatable
        )
        return json_of(self._connections, response)


def named_point_queries(name: str) -> list[dict[str, str]]:
    """Returns the queries that may read what a name means, the first that is answered counts."""
    if name == "HEAD":
        return [{}]
    if parse_hash(name) is not None:
        return [{"version": name}]
    kind, _, rest = name.partition("/")
    queries = [{"snapshot": name}]
    if rest and kind in ("snapshots", "forks"):
        queries.insert(0, {kind.removesuffix("s"): rest})
    try:
        return [*queries, {"at": str(parse_time(name))}]
    except InvalidInput:
        return queries


def _at(version: str | None) -> dict[str, str]:
    return {"version": version} if version is not None else {}


def _header(response: HTTPResponse, name: str) -> str:
    value = response.headers.get(name)
    if value is None:
        raise ServiceUnavailable(f"The server does not answer as an svc server does: {name} is missing.")
    return value


def _info_of_headers(response: HTTPResponse) -> FileInfo:
    try:
        kind = _KINDS[_header(response, "X-Svc-Entry-Type")]
        return FileInfo(
            parse_path(unquote(_header(response, "X-Svc-Path"))),
            kind,
            _header(response, "X-Svc-Content-Hash"),
            int(_header(response, "X-Svc-Size")),
            int(_header(response, "X-Svc-Created-At")),
            int(_header(response, "X-Svc-Updated-At")),
            response.headers.get("Content-Type") if kind is EntryKind.FILE else None,
            unquote(_header(response, "X-Svc-Symlink-Target")) if kind is EntryKind.SYMLINK else None,
        )
    except (KeyError, ValueError):
        raise _foreign("The server") from None


def _listing(answer: Any) -> tuple[list[Any], str | None]:
    if not isinstance(answer, dict) or not isinstance(answer.get("items"), list):
        raise _foreign("The server")
    return answer["items"], answer.get("next_cursor") if answer.get("has_more") else None


def _info_of_item(item: Any, parent: Path) -> FileInfo:
    """The child that a listing's item describes; its name is checked, for it may name a file here."""
    try:
        kind = EntryKind(item["entry_type"])
        name = item["name"]
        if not isinstance(name, str) or not name or "/" in name or name in (".", ".."):
            raise InvalidPath("The server sent a name that no path can have.")
        return FileInfo(
            (*parent, name),
            kind,
            item["hash"],
            int(item["total_size"]) if kind is EntryKind.DIRECTORY else int(item["size"]),
            int(item["created_at"]),
            int(item["updated_at"]),
            item.get("content_type"),
            item.get("target"),
            item.get("file_count"),
        )
    except (KeyError, TypeError, ValueError):
        raise _foreign("The server") from None


def _foreign(label: str) -> ServiceUnavailable:
    return ServiceUnavailable(f"{label} does not answer as an svc server does.")
