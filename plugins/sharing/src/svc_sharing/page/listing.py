"""The pages behind the first one: what is shared, and a plain message where something is not to be had."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from msgspec import Struct

from svc.plugin import Path
from svc_sharing.page.frame import document

__all__ = ["FILES", "Row", "files_page", "message_page", "page_url", "shown_size"]

FILES = "/share/files/"
_FOLDER = (
    '<path d="M2.5 5.5a1.5 1.5 0 0 1 1.5-1.5h4l2 2.5h6a1.5 1.5 0 0 1 1.5 1.5v7A1.5 1.5 0 0 1 16 16.5H4'
    'A1.5 1.5 0 0 1 2.5 15z"/>'
)
_FILE = '<path d="M5 2.5h6.5L16 7v9.5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1v-13a1 1 0 0 1 1-1zM11.5 2.5V7H16"/>'
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")

_MESSAGES = {
    401: (
        "This link does not work any more",
        "It has expired or was withdrawn, or you opened it long ago. Open it again, or ask for another.",
    ),
    404: (
        "There is nothing here",
        "What you look for was moved or removed, or it is not part of what was shared with you.",
    ),
    503: ("The server is busy", "It cannot answer now. Try again in a moment."),
}
_FAILED = ("This did not work", "The server could not answer. Try again later.")


class Row(Struct, frozen=True):
    """One line of a listing; a size or time of None is not shown. A directory opens a page."""

    path: Path
    name: str
    is_directory: bool
    size: int | None
    updated_ms: int | None


def page_url(path: Path) -> str:
    """Returns the URL of a file or a directory behind a link."""
    return FILES + "/".join(quote(name, safe="") for name in path)


def files_page(
    title: str,
    trail: Sequence[tuple[str, Path | None]],
    rows: Sequence[Row],
    *,
    next_url: str | None,
    ends_ms: int | None,
) -> bytes:
    """Returns a page that lists something.

    ``trail`` are the directories above, each with its path; None stands for the first page. ``next_url`` is
    where the listing goes on, ``ends_ms`` until when the link works.
    """
    parts = [_trail(trail), f"<h1>{escape(title)}</h1>", '<div class="card">']
    if rows:
        parts.append(
            '<table><thead><tr><th class="name">Name</th><th class="size">Size</th>'
            '<th class="time">Changed (UTC)</th><th class="get"></th></tr></thead><tbody>'
        )
        parts += map(_row, rows)
        parts.append("</tbody></table>")
    else:
        parts.append('<div class="text"><p>There is nothing in here.</p></div>')
    parts.append("</div>")
    if next_url is not None:
        parts.append(f'<p class="more"><a rel="next" href="{escape(next_url)}">More\u2026</a></p>')
    if ends_ms is not None:
        parts.append(f"<footer>This link works until {_day(ends_ms)}.</footer>")
    return document(title, "\n".join(part for part in parts if part))


def message_page(status: int) -> bytes:
    """Returns the page that says why something is not to be had."""
    title, text = _MESSAGES.get(status, _FAILED)
    back = f'<p><a href="{FILES}">Back to the shared files</a></p>' if status == 404 else ""
    body = f'<div class="card"><div class="text"><h1>{title}</h1><p>{text}</p>{back}</div></div>'
    return document(title, body)


def shown_size(size: int) -> str:
    """Returns a number of bytes as people read it."""
    amount, unit = float(size), 0
    # Half a unit below a thousand would be shown as a thousand.
    while amount >= 999.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    digits = 0 if unit == 0 or amount >= 99.5 else 1
    return f"{amount:.{digits}f} {_UNITS[unit]}"


def _trail(trail: Sequence[tuple[str, Path | None]]) -> str:
    if not trail:
        return ""
    links = (
        f'<a href="{escape(FILES if path is None else page_url(path))}">{escape(name)}</a>'
        for name, path in trail
    )
    return f'<nav aria-label="Folders">{" / ".join(links)} /</nav>'


def _row(row: Row) -> str:
    url, name = escape(page_url(row.path)), escape(row.name)
    icon = f'<svg viewBox="0 0 20 20" aria-hidden="true">{_FOLDER if row.is_directory else _FILE}</svg>'
    size = "" if row.size is None else shown_size(row.size)
    get = "" if row.is_directory else f'<a download href="{url}" aria-label="Download {name}">Download</a>'
    mark = "/" if row.is_directory else ""
    return (
        f'<tr><td class="name"><a href="{url}">{icon}<span>{name}{mark}</span></a></td>'
        f'<td class="size">{size}</td><td class="time">{_time(row.updated_ms)}</td>'
        f'<td class="get">{get}</td></tr>'
    )


def _time(time_ms: int | None) -> str:
    moment = None if time_ms is None else _moment(time_ms)
    if moment is None:
        return ""
    return f'<time datetime="{moment:%Y-%m-%dT%H:%M:%SZ}">{moment:%Y-%m-%d %H:%M}</time>'


def _day(time_ms: int) -> str:
    moment = _moment(time_ms)
    return "further notice" if moment is None else f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _moment(time_ms: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
