"""Response headers of files, directories and links."""

from __future__ import annotations

from urllib.parse import quote

import falcon

from svc.hashing import Hash
from svc.paths import Path, format_path
from svc.pipeline import format_http_date, quote_etag
from svc.tree import Entry, EntryKind
from svc_files.content_types import base_type
from svc_files.items import ENTRY_TYPE_NAMES

__all__ = ["describe", "header_path", "set_content_headers"]

_ACTIVE_TYPES = frozenset(
    {"text/html", "application/xhtml+xml", "image/svg+xml", "text/xml", "application/xml", "text/xsl"}
)
_SANDBOX = "sandbox"


def header_path(path: Path | str) -> str:
    """Returns a path as a header field can carry it: percent-encoded UTF-8."""
    return quote(path if isinstance(path, str) else format_path(path), safe="/!$&'()*+,;=:@~-._")


def describe(
    resp: falcon.Response,
    path: Path,
    entry: Entry,
    version: Hash,
    *,
    etag: str | None,
    link: Entry | None = None,
) -> None:
    """Sets the headers that say what stands at a path.

    Args:
        resp: the response.
        path: where the entry stands, links resolved.
        entry: the entry.
        version: root hash of the version that was read.
        etag: opaque strong entity tag; None sets none.
        link: the symbolic link that the request named, when it named one.
    """
    target = link.target if link is not None else entry.target
    headers = [
        ("Last-Modified", format_http_date(entry.updated_ms)),
        ("Cache-Control", "private, no-cache"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Svc-Entry-Type", ENTRY_TYPE_NAMES[entry.kind]),
        ("X-Svc-Path", header_path(path)),
        ("X-Svc-Size", str(entry.size)),
        ("X-Svc-Created-At", str(entry.created_ms)),
        ("X-Svc-Updated-At", str(entry.updated_ms)),
        ("X-Svc-Content-Hash", entry.hash.hex()),
        ("X-Svc-Version", version.hex()),
    ]
    if target is not None:
        headers.append(("X-Svc-Symlink-Target", header_path(target)))
    if etag is not None:
        headers.append(("ETag", quote_etag(etag)))
    resp.set_headers(headers)


def set_content_headers(resp: falcon.Response, entry: Entry, *, sandbox: bool) -> None:
    """Sets the headers that a file's own bytes are served with.

    Stored pages come from whoever may write; a sandbox keeps their scripts from acting in the
    server's origin with the reader's rights.
    """
    resp.set_header("Accept-Ranges", "bytes")
    if sandbox and entry.kind is EntryKind.FILE and base_type(entry.content_type) in _ACTIVE_TYPES:
        resp.set_header("Content-Security-Policy", _SANDBOX)
