"""The responder of contents that have lost."""

from __future__ import annotations

import falcon

from svc.errors import NotFound
from svc.plugin import EntryKind, Path, SvcRequest, context_of, format_path, read_parameters, send_content
from svc_files.api import read_mounted
from svc_sync.exchange.losers import CONFLICTS
from svc_sync.exchange.resolving import find_conflict, loser_content
from svc_sync.models import VersionQuery
from svc_sync.mount import ConflictsMount

__all__ = ["read_kept", "read_loser"]

_MOUNT = ConflictsMount()
_UNKNOWN = "application/octet-stream"


def read_kept(req: SvcRequest, resp: falcon.Response, path: Path = ()) -> None:
    """Sends what has lost at a path, or the names of what has."""
    read_mounted(req, resp, (CONFLICTS, *path), _MOUNT)


def read_loser(req: SvcRequest, resp: falcon.Response, path: Path) -> None:
    """Sends the content that has lost at a path."""
    database = context_of(req).database
    _, found = find_conflict(database, path, read_parameters(req, VersionQuery).version)
    version, entry = loser_content(database, found)
    if entry.kind is not EntryKind.FILE:
        raise NotFound(
            "What has lost is a link: the list of conflicts says to where.", path=format_path(path)
        )
    send_content(
        req,
        resp,
        size=entry.size,
        etag=entry.hash.hex(),
        updated_ms=entry.updated_ms,
        content_type=entry.content_type or _UNKNOWN,
        read=lambda start, length: version.read(entry, start, length),
    )
