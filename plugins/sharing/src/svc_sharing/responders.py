"""``/share``: what a link opens in a browser.

The key stands behind ``#``, so it reaches no server log: a script of the first page sends it to
``/share/session``, which answers with a cookie. The pages behind are plain HTML.
"""

from __future__ import annotations

import math
from urllib.parse import quote, urlencode

import falcon

from svc.errors import AuthRequired, Forbidden, RateLimited
from svc.plugin import (
    Entry,
    EntryKind,
    Path,
    context_of,
    errors_as_page,
    read_json,
    read_parameters,
    send_content,
    send_json,
    set_fields,
)
from svc_auth_self.api import (
    client_address,
    find_key,
    limiter_of,
    log_refused_sign_in,
    log_sign_in,
    token_mode,
)
from svc_sharing.models import LinkKey, OpenedLink, SharedFilesQuery
from svc_sharing.opened import LinkInHand, link_in_hand
from svc_sharing.page.frame import page_fields
from svc_sharing.page.listing import FILES, Row, files_page, message_page, page_url
from svc_sharing.page.opening import OPENING_FIELDS, OPENING_PAGE

__all__ = ["COOKIE", "SECURE_COOKIE", "open_link", "show_error", "show_first_page", "show_shared_path"]

COOKIE = "svc_share"
SECURE_COOKIE = "__Host-svc_share"
"""Of this name a browser takes no cookie but one of this very host, by TLS, for all paths (RFC 6265bis)."""
COOKIE_PATH = "/share"
_MAXIMUM_BODY = 4096
_PRIVATE = "private, no-store"
# Browsers make a page around a picture, film, sound or PDF, which loads it by its own address: a sandbox
# would take the origin from that page, and with it the cookie.
_SHOWN_POLICY = (
    "default-src 'none'; img-src 'self'; media-src 'self'; object-src 'self'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILE_POLICY = f"sandbox; {_SHOWN_POLICY}"
_PLAIN_FIELDS = page_fields()
_OCTET_STREAM = "application/octet-stream"
_SHOWN = frozenset(
    {"application/pdf", "image/avif", "image/gif", "image/jpeg", "image/png", "image/webp", "text/plain"}
)
"""What a browser shows and runs nothing of here, beside sound and video; all else is for downloading."""


def show_first_page(_req: falcon.Request, resp: falcon.Response) -> None:
    """Answers the first page, which knows no key before its script has looked at its address."""
    set_fields(resp, OPENING_FIELDS)
    resp.data = OPENING_PAGE


def open_link(req: falcon.Request, resp: falcon.Response) -> None:
    """Signs a browser in, for the pages below ``/share`` and reading alone."""
    _require_own_page(req)
    context = context_of(req)
    settings, mode = context.configuration, token_mode(context)
    limiter, client = limiter_of(context.database, "share-links"), client_address(context)
    limits = settings.failures, settings.failures_window_s
    match = mode.match_key(read_json(req, LinkKey, _MAXIMUM_BODY).key.strip())
    if match is None or match.user_id is not None or not match.rules:
        # A link that works does so from everywhere: others may have tried wrong ones from the same address.
        wait = limiter.hit(client, *limits)
        if wait is not None:
            seconds = math.ceil(wait)
            raise RateLimited(f"Too many links did not work; try again in {seconds} s.", retry_after=seconds)
        log_refused_sign_in(context, "share link", "it is no key of a link that works")
        raise AuthRequired("The link does not work: it has expired, or was withdrawn.")
    token, lifetime_s = mode.write_token(match, settings.session_s)
    log_sign_in(context, "share link", user_id=None, key_id=match.key_id)
    secure = _is_secure(req)
    resp.set_cookie(
        SECURE_COOKIE if secure else COOKIE,
        token,
        max_age=lifetime_s,
        path="/" if secure else COOKIE_PATH,
        secure=secure,
        http_only=True,
        same_site="Strict",
    )
    resp.set_header("Cache-Control", "no-store")
    send_json(resp, OpenedLink(lifetime_s, FILES))


def show_error(resp: falcon.Response, status: int) -> None:
    """Says in a page why something is not to be had."""
    set_fields(resp, _PLAIN_FIELDS)
    resp.data = message_page(status)


@errors_as_page(show_error)
def show_shared_path(req: falcon.Request, resp: falcon.Response, path: Path) -> None:
    """A page of a directory, the bytes of a file, or the list of all that the link is for."""
    link = link_in_hand(context_of(req))
    if not path and () not in link.roots:
        _answer_start(resp, link)
        return
    found, entry = link.find(path)
    if entry.kind is EntryKind.DIRECTORY:
        _answer_directory(req, resp, link, path, found)
    else:
        _answer_file(req, resp, link, path, entry)


def _answer_start(resp: falcon.Response, link: LinkInHand) -> None:
    """Lists what the link is for; goes on to it where that is one directory."""
    version = link.context.version
    rows = [
        row
        for root in link.roots
        if (entry := version.get(root)) is not None and (row := link.row(root, entry)) is not None
    ]
    if len(link.roots) == 1 and rows and rows[0].is_directory:
        resp.status = falcon.HTTP_303
        resp.location = page_url(link.roots[0])
        resp.set_header("Cache-Control", _PRIVATE)
        return
    _answer_page(resp, link, "Shared files", [], rows, None)


def _answer_directory(
    req: falcon.Request, resp: falcon.Response, link: LinkInHand, path: Path, found: Path
) -> None:
    after = read_parameters(req, SharedFilesQuery).after
    rows, after = link.page(found, after, link.context.configuration.page_entries)
    next_url = None if after is None else f"{page_url(path)}?{urlencode({'after': after})}"
    root = link.root_of(path) or ()
    trail: list[tuple[str, Path | None]] = [] if len(link.roots) == 1 else [("Shared files", None)]
    for length in range(len(root), len(path)):
        name = path[length - 1] if length else "Shared files"
        trail.append((name, path[:length]))
    shown = [Row((*path, row.name), row.name, row.is_directory, row.size, row.updated_ms) for row in rows]
    _answer_page(resp, link, path[-1] if path else "Shared files", trail, shown, next_url)


def _answer_page(
    resp: falcon.Response,
    link: LinkInHand,
    title: str,
    trail: list[tuple[str, Path | None]],
    rows: list[Row],
    next_url: str | None,
) -> None:
    key_id = link.context.identity.key_id
    key = None if key_id is None else find_key(link.context.database.system(), key_id)
    set_fields(resp, _PLAIN_FIELDS)
    resp.set_header("Cache-Control", _PRIVATE)
    resp.data = files_page(
        title, trail, rows, next_url=next_url, ends_ms=None if key is None else key.expires_at
    )


def _answer_file(
    req: falcon.Request, resp: falcon.Response, link: LinkInHand, path: Path, entry: Entry
) -> None:
    """Sends a file. Nothing of it runs here: it is of a kind that runs nothing, or in a sandbox."""
    version = link.context.version
    content_type = entry.content_type or _OCTET_STREAM
    is_shown = _is_shown(content_type)
    set_fields(
        resp,
        {
            "content-disposition": _disposition(is_shown, path[-1] if path else ""),
            "content-security-policy": _SHOWN_POLICY if is_shown else _FILE_POLICY,
            "cross-origin-resource-policy": "same-origin",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        },
    )
    send_content(
        req,
        resp,
        size=entry.size,
        etag=entry.hash.hex(),
        updated_ms=entry.updated_ms,
        content_type=content_type,
        read=lambda start, length: version.read(entry, start, length),
        read_all=lambda: version.read_all(entry),
        hold=lambda: link.context.database.hold_version(version.root),
    )


def _is_shown(content_type: str) -> bool:
    base = content_type.partition(";")[0].strip().lower()
    return base in _SHOWN or base.startswith(("audio/", "video/"))


def _disposition(is_shown: bool, name: str) -> str:
    """How a browser takes a file, and what it calls it (RFC 6266)."""
    return f"{'inline' if is_shown else 'attachment'}; filename*=UTF-8''{quote(name, safe='')}"


def _require_own_page(req: falcon.Request) -> None:
    """Refuses a page of another site: it could sign a browser in to a link that its user never opened."""
    if req.get_header("Sec-Fetch-Site") not in (None, "same-origin", "none"):
        raise Forbidden("Pages of other sites open no links.")


def _is_secure(req: falcon.Request) -> bool:
    """Whether the browser speaks TLS, to us or to a proxy before us: its own page says where it came from."""
    return req.scheme == "https" or (req.get_header("Origin") or "").startswith("https://")
