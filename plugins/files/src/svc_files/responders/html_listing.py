"""A page of a listing as HTML, for browsers and for programs that walk the links of a directory."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

import falcon

from svc_files.requests import READ_POINTS

__all__ = ["html_page", "wants_html"]

FIELDS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_DIRECTORY = 3
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Index of {title}</title>
</head>
<body>
<h1>Index of {title}</h1>
<table>
<thead><tr><th scope="col">Name</th><th scope="col">Changed (UTC)</th><th scope="col">Bytes</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
{more}</body>
</html>
"""


def wants_html(req: falcon.Request) -> bool:
    """Whether the client asks for HTML before JSON, as browsers do; who takes anything gets JSON."""
    return req.client_prefers(("application/json", "text/html")) == "text/html"


def html_page(
    req: falcon.Request, path: str, items: Iterable[dict[str, Any]], next_cursor: str | None
) -> str:
    """Returns a page whose links lead to the entries, at the same version; those of directories end in ``/``.

    Args:
        req: the request, whose route and version the links have.
        path: of the directory.
        items: of the listing.
        next_cursor: where the next page begins, if there is one.
    """
    prefix = req.path[: req.path.index("/", 1)]
    point = {name: value for name in READ_POINTS if (value := req.get_param(name)) is not None}
    query = f"?{urlencode(point)}" if point else ""
    above = quote(path.rpartition("/")[0])
    rows = [] if path == "/" else [_row("../", f"{prefix}{above}/{query}", None, "")]
    for item in items:
        is_directory = item["entry_type"] == _DIRECTORY
        name, slash = item["name"], "/" if is_directory else ""
        size = "" if is_directory else str(item["size"])
        rows.append(
            _row(name + slash, f"{prefix}{quote(item['path'])}{slash}{query}", item["updated_at"], size)
        )
    more = ""
    if next_cursor is not None:
        following = urlencode({**req.params, "after": next_cursor})
        more = f'<p><a rel="next" href="{escape(prefix + quote(path))}?{escape(following)}">More</a></p>\n'
    return _PAGE.format(title=escape(path), rows="\n".join(rows), more=more)


def _row(name: str, url: str, updated_ms: int | None, size: str) -> str:
    time = ""
    if updated_ms is not None:
        with suppress(OverflowError, ValueError, OSError):  # Out of what a calendar has.
            time = f"{datetime.fromtimestamp(updated_ms / 1_000, UTC):%Y-%m-%d %H:%M}"
    return f'<tr><td><a href="{escape(url)}">{escape(name)}</a></td><td>{time}</td><td>{size}</td></tr>'
