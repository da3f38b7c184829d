"""Files of a server: what streams, and what header fields say. All else is called by its operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from svc.errors import Forbidden, NotFound, ServiceUnavailable, SvcError
from svc.paths import Path, format_path, parse_path
from svc_client.failures import foreign_answer
from svc_client.models import EntryInfo, EntryType, Page, StoredFile
from svc_client.paging import all_items
from svc_client.transport import Body, Response, Transport

__all__ = ["Content", "Files", "ReadAt", "file_url"]

_KINDS = {"file": EntryType.FILE, "directory": EntryType.DIRECTORY, "symlink": EntryType.SYMLINK}


class ReadAt(Struct, frozen=True):
    """The state that is read; HEAD when nothing is named. The first that is given wins.

    Attributes:
        snapshot: a snapshot's name.
        version: a root hash in hex.
        fork: a fork's name.
        at: a time, ISO 8601 or Unix milliseconds as text: HEAD as it was then.
    """

    snapshot: str | None = None
    version: str | None = None
    fork: str | None = None
    at: str | None = None

    def query(self) -> dict[str, str]:
        """The parameters of a request."""
        found = {"snapshot": self.snapshot, "version": self.version, "fork": self.fork, "at": self.at}
        return {name: value for name, value in found.items() if value is not None}


HEAD = ReadAt()


class Content:
    """A file's bytes on their way, and what the answer's head says of it; a context closes it.

    Attributes:
        info: the file.
        start: first byte that comes.
        length: bytes that come.
    """

    def __init__(self, response: Response, info: EntryInfo, start: int, length: int) -> None:
        self._response = response
        self.info = info
        self.start = start
        self.length = length

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def __iter__(self) -> Iterator[bytes]:
        return self._response.pieces()

    def read(self, size: int = 1024 * 1024) -> bytes:
        """Returns the next bytes, at most so many; nothing at the end."""
        return self._response.read(size)


class _Listing(Struct):
    path: str
    items: list[EntryInfo]
    has_more: bool
    total: int | None = None
    next_cursor: str | None = None


class Files:
    """``/files``: what stands at paths.

    A path is text (``/a/b``) or a tuple of its segments.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def stat(self, path: str | Path, at: ReadAt = HEAD, *, follow: bool = True) -> EntryInfo:
        """Describes what stands at a path; ``version`` is the root hash of what was read.

        Args:
            path: where.
            at: the state that is read.
            follow: describe what a link leads to, under that path, rather than the link.

        Raises:
            NotFound: nothing is there.
        """
        query = at.query()
        if not follow:
            query["nofollow"] = "true"
        url = file_url("/files/", path)
        try:
            response = self._transport.request("HEAD", url, query=query)
        except SvcError as error:
            # An answer to HEAD has no body that could say more than its status.
            if isinstance(error, Forbidden):
                raise Forbidden(
                    "You may not read or list this path.", path=_text(path), **error.details
                ) from error
            if isinstance(error, ServiceUnavailable) or error.status == 401:
                raise
            if isinstance(error, NotFound) and not query:
                raise NotFound("There is nothing at this path.", path=_text(path), **error.details) from error
            response = self._transport.request("GET", url, query={**query, "limit": "1"})
        with response:
            return _info_of_headers(response)

    def get(
        self,
        path: str | Path,
        at: ReadAt = HEAD,
        *,
        start: int = 0,
        length: int | None = None,
        if_match: str | None = None,
    ) -> Content:
        """Opens a file to read it, or a range of it. Use it as a context.

        Args:
            path: where.
            at: the state that is read.
            start: first byte.
            length: number of bytes, at least 1; None means to the end.
            if_match: hex content hash that the file must have.

        Raises:
            NotFound: nothing is there.
            PreconditionFailed: the file has another content.
            RangeNotSatisfiable: no byte of the range exists.
            ServiceUnavailable: a directory is there, or the server serves no ranges.
        """
        headers = {} if if_match is None else {"If-Match": _tag(if_match)}
        partial = start > 0 or length is not None
        if partial:
            last = "" if length is None else str(start + length - 1)
            headers["Range"] = f"bytes={start}-{last}"
        response = self._transport.request(
            "GET", file_url("/files/", path), query=at.query(), headers=headers
        )
        try:
            info = _info_of_headers(response)
            if info.entry_type is EntryType.DIRECTORY:
                raise ServiceUnavailable("A directory stands at this path; it can be listed.")
            if partial and response.status != 206:
                raise ServiceUnavailable(f"{self._transport.address.url} does not serve ranges.")
            return Content(response, info, start, response.number("Content-Length"))
        except BaseException:
            response.close()
            raise

    def read(self, path: str | Path, at: ReadAt = HEAD) -> bytes:
        """Returns the whole content of a file."""
        with self.get(path, at) as content:
            return b"".join(content)

    def put(
        self,
        path: str | Path,
        body: Body,
        *,
        size: int | None = None,
        content_type: str | None = None,
        if_match: str | None = None,
        create_only: bool = False,
        created_at: int | None = None,
        updated_at: int | None = None,
        fork: str | None = None,
    ) -> StoredFile:
        """Stores a file in one commit; parents appear by themselves.

        Args:
            path: where.
            body: bytes; a function that starts the content anew each time it has to be sent; or an iterable,
                which is sent once and never again.
            size: bytes of a body that is not ``bytes``; without it the body goes out in chunks.
            content_type: media type; None lets the content and the name decide.
            if_match: hex content hash that must stand there now, or ``*`` for any file.
            create_only: refuse when anything stands there.
            created_at: time of creation, Unix milliseconds.
            updated_at: time of the last update, Unix milliseconds.
            fork: the fork to write to; None means HEAD.

        Raises:
            PreconditionFailed: ``if_match`` or ``create_only`` does not hold.
            Conflict: a directory stands there, or a file where a directory is needed.
        """
        headers: dict[str, str] = {}
        if isinstance(body, bytes):
            size = len(body)
        if size is not None:
            headers["Content-Length"] = str(size)
        if content_type is not None:
            headers["Content-Type"] = content_type
        if if_match is not None:
            headers["If-Match"] = _tag(if_match)
        if create_only:
            headers["If-None-Match"] = "*"
        for name, time_ms in (("X-Svc-Created-At", created_at), ("X-Svc-Updated-At", updated_at)):
            if time_ms is not None:
                headers[name] = str(time_ms)
        response = self._transport.request(
            "PUT",
            file_url("/files/", path),
            query=_fork(fork),
            headers=headers,
            body=body,
            repeatable=False if if_match is not None or create_only else None,
        )
        stored = response.json(StoredFile)
        return msgspec.structs.replace(stored, created=response.status == 201)

    def page(
        self,
        path: str | Path = "/",
        at: ReadAt = HEAD,
        *,
        depth: int = 0,
        glob: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[EntryInfo]:
        """Returns a page of a directory's listing.

        Args:
            path: the directory.
            at: the state that is read.
            depth: 0 lists the directory's entries; -1 every file below it, N those of N levels more.
            glob: only what this pattern fits.
            limit: most entries; the server's default when None.
            after: the cursor of the page before.
        """
        query = at.query()
        if depth:
            query["depth"] = str(depth)
        if glob is not None:
            query["glob"] = glob
        if limit is not None:
            query["limit"] = str(limit)
        if after is not None:
            query["after"] = after
        listing = self._transport.json("GET", file_url("/files/", path), _Listing, query=query)
        return Page(listing.items, listing.next_cursor if listing.has_more else None, listing.total)

    def list(
        self, path: str | Path = "/", at: ReadAt = HEAD, *, depth: int = 0, glob: str | None = None
    ) -> Iterator[EntryInfo]:
        """Yields the entries of a directory, page by page; see ``page``."""
        return all_items(lambda after: self.page(path, at, depth=depth, glob=glob, after=after))


def file_url(route: str, path: str | Path) -> str:
    """Returns the URL path of a route and a database path, each segment percent-encoded."""
    segments = parse_path(path) if isinstance(path, str) else path
    return route + "/".join([quote(segment, safe="~!$'()*,;:@") for segment in segments])


def _text(path: str | Path) -> str:
    return path if isinstance(path, str) else format_path(path)


def _tag(hash: str) -> str:
    return "*" if hash == "*" else f'"{hash}"'


def _fork(fork: str | None) -> dict[str, str]:
    return {} if fork is None else {"fork": fork}


def _info_of_headers(response: Response) -> EntryInfo:
    try:
        kind = _KINDS[response.header("X-Svc-Entry-Type")]
        path = unquote(response.header("X-Svc-Path"))
        hash = response.headers.get("X-Svc-Content-Hash")
        number = _number_of if hash is None and kind is EntryType.DIRECTORY else _required_number_of
        size = number(response, "X-Svc-Size")
        return EntryInfo(
            path=path,
            name=path.rpartition("/")[2],
            entry_type=kind,
            hash=hash,
            size=size,
            created_at=number(response, "X-Svc-Created-At"),
            updated_at=number(response, "X-Svc-Updated-At"),
            content_type=response.headers.get("Content-Type") if kind is EntryType.FILE else None,
            target=(
                unquote(response.header("X-Svc-Symlink-Target"))
                if kind is EntryType.SYMLINK
                else msgspec.UNSET
            ),
            total_size=size if kind is EntryType.DIRECTORY else msgspec.UNSET,
            version=response.headers.get("X-Svc-Version") or msgspec.UNSET,
        )
    except (KeyError, ValueError):
        raise foreign_answer("The server") from None


_Number = Callable[[Response, str], int | None]


def _required_number_of(response: Response, name: str) -> int | None:
    return int(response.header(name))


def _number_of(response: Response, name: str) -> int | None:
    value = response.headers.get(name)
    return None if value is None else int(value)
