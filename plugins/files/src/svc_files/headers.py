"""Response headers of files, directories and links."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from urllib.parse import quote

import falcon

from svc.plugin import (
    Entry,
    EntryKind,
    Hash,
    Path,
    context_of,
    format_http_date,
    format_path,
    mark_immutable,
    quote_etag,
    set_fields,
)
from svc_files.content_types import base_type
from svc_files.items import ENTRY_TYPE_NAMES
from svc_files.requests import settings_of

__all__ = ["describe", "header_path", "set_content_headers"]

_ACTIVE_TYPES = frozenset(
    {
        *("text/html", "text/xml", "application/xml", "text/xsl", "application/xslt"),
        *("multipart/x-mixed-replace", "multipart/related", "message/rfc822"),
    }
)
_OF_ACTIVE_CONTENT = {
    "content-security-policy": "sandbox; script-src 'none'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'self'",
    "referrer-policy": "no-referrer",
}
_SHOWN = "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
_OF_OTHERS = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; " + _SHOWN
"""Browsers make a page around a picture, a film or a sound, which loads it by its own address."""
_OF_PDF = "script-src 'none'; " + _SHOWN
"""The viewers of browsers are plugins to them, which the policy of other files forbids."""
_PDF = "application/pdf"
_FILE = EntryKind.FILE
_PLAIN_NAME = re.compile(r"[\w.\-+@ ]{1,128}", re.ASCII)
_PLAIN = re.compile(r"[/!$&'()*+,;=:@~\-._0-9A-Za-z]*")


def header_path(path: Path | str) -> str:
    """Returns a path as a header field can carry it: percent-encoded UTF-8."""
    text = path if isinstance(path, str) else format_path(path)
    return text if _PLAIN.fullmatch(text) else quote(text, safe="/!$&'()*+,;=:@~-._")


def describe(
    resp: falcon.Response,
    path: Path,
    entry: Entry,
    version: Hash,
    *,
    etag: str | None,
    link: Entry | None = None,
    immutable: bool = False,
    complete: bool = True,
) -> None:
    """Sets the headers that say what stands at a path, links resolved.

    Args:
        resp: the response.
        path: where the entry stands.
        entry: the entry.
        version: root hash of the version that was read.
        etag: opaque strong entity tag; None sets none.
        link: the symbolic link that the request named, when it named one.
        immutable: whether the answer depends on nothing but the version that is read.
        complete: whether the caller sees everything below a directory; else nothing made from that is said.
    """
    target = link.target if link is not None else entry.target
    if immutable:
        mark_immutable(resp)
    set_fields(resp, _fields_of(path, entry, target, etag, complete))
    resp.set_header("X-Svc-Version", version.hex())


@functools.lru_cache(maxsize=2048)
def _fields_of(
    path: Path, entry: Entry, target: str | None, etag: str | None, complete: bool
) -> Mapping[str, str]:
    """The fields that are the same in every version with this entry at this path; nobody changes them."""
    fields = {
        "x-svc-entry-type": ENTRY_TYPE_NAMES[entry.kind],
        "x-svc-path": header_path(path),
    }
    if complete:
        fields["last-modified"] = format_http_date(entry.updated_ms)
        fields["x-svc-size"] = str(entry.size)
        fields["x-svc-created-at"] = str(entry.created_ms)
        fields["x-svc-updated-at"] = str(entry.updated_ms)
        fields["x-svc-content-hash"] = entry.hash.hex()
    if entry.kind is _FILE:
        fields["accept-ranges"] = "bytes"
        fields["content-disposition"] = _disposition(path[-1] if path else "")
        fields["content-security-policy"] = _OF_PDF if base_type(entry.content_type) == _PDF else _OF_OTHERS
    if target is not None:
        fields["x-svc-symlink-target"] = header_path(target)
    if etag is not None:
        fields["etag"] = quote_etag(etag)
    return fields


def set_content_headers(req: falcon.Request, resp: falcon.Response, entry: Entry) -> None:
    """Sets the headers that a file's own bytes are served with.

    Stored pages come from whoever may write; a sandbox keeps their scripts from acting in the server's origin
    with the reader's rights, unless the operator wants none.
    """
    if not _is_active(entry.content_type):
        return
    if settings_of(context_of(req)).sandbox_active_content:
        set_fields(resp, _OF_ACTIVE_CONTENT)
    else:
        resp.delete_header("Content-Security-Policy")


def _disposition(name: str) -> str:
    """How a browser takes a file, and what it calls it when it is kept (RFC 6266)."""
    if _PLAIN_NAME.fullmatch(name):
        return f'inline; filename="{name}"'
    return f"inline; filename*=UTF-8''{quote(name, safe='')}"


@functools.lru_cache(maxsize=1024)
def _is_active(content_type: str | None) -> bool:
    """Whether a browser runs what a content of this type holds: in any XML a script can stand."""
    media_type = base_type(content_type)
    return media_type in _ACTIVE_TYPES or media_type.endswith("+xml")
