"""E-mail, as it is kept in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import getaddresses, parsedate_to_datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from svc_query.api import Parser, ParserInput

from svc_parsers.shapes import text_members, without_empty

if TYPE_CHECKING:
    from email.message import EmailMessage

__all__ = ["MailParser"]

_MAXIMUM_PARTS = 1_000
_MAXIMUM_HEADERS = 500
_MAXIMUM_VALUE = 10_000


class MailParser(Parser):
    """Who wrote to whom, when and what; attachments by their names."""

    name = "mail"
    content_types = frozenset({"message/rfc822", "message/global"})
    extensions = frozenset({"eml"})

    def parse(self, content: BinaryIO, source: ParserInput) -> dict[str, Any]:
        """Returns ``title`` (the subject), ``from``, ``to``, ``date``, ``text``, ``attachments`` and more."""
        from email import message_from_binary_file, policy
        from email.message import EmailMessage

        message = message_from_binary_file(content, _class=EmailMessage, policy=policy.default)
        headers = _headers(message)
        if not headers:
            raise ValueError("it has no headers, so it is no e-mail")
        texts, attachments = _parts(message)
        members = {
            "title": _first(headers, "subject"),
            "from": _addresses(headers, "from"),
            "to": _addresses(headers, "to"),
            "cc": _addresses(headers, "cc"),
            "date": _date(_first(headers, "date")),
            "message_id": _first(headers, "message-id"),
            "in_reply_to": _first(headers, "in-reply-to"),
            "headers": headers,
            "attachments": attachments,
        }
        return {**without_empty(members), **text_members(texts)}


def _headers(message: EmailMessage) -> dict[str, list[str]]:
    """All headers by their lower-case names. One that the library can't read is taken as it stands."""
    found: dict[str, list[str]] = {}
    for name, raw in list(message.raw_items())[:_MAXIMUM_HEADERS]:
        try:
            value = str(message.policy.header_fetch_parse(name, raw))
        except Exception:  # noqa: BLE001
            value = str(raw)
        found.setdefault(name.lower(), []).append(" ".join(value.split())[:_MAXIMUM_VALUE])
    return found


def _first(headers: dict[str, list[str]], name: str) -> str | None:
    return next(iter(headers.get(name, [])), None)


def _addresses(headers: dict[str, list[str]], name: str) -> list[dict[str, str]]:
    pairs = getaddresses(headers.get(name, []))
    return [
        found for shown, address in pairs if (found := without_empty({"name": shown, "address": address}))
    ]


def _date(text: str | None) -> str | None:
    try:
        return parsedate_to_datetime(text).isoformat() if text else None
    except (TypeError, ValueError, IndexError):
        return None


def _parts(message: EmailMessage) -> tuple[list[str], list[dict[str, Any]]]:
    """The texts of the body, and what is attached. HTML counts only where there is no plain text."""
    plain: list[str] = []
    pages: list[str] = []
    attachments: list[dict[str, Any]] = []
    for part in _leaves(message):
        kind, name = part.get_content_type(), part.get_filename()
        payload = part.get_payload(decode=True) or b""
        if not isinstance(payload, bytes):
            continue
        if name or part.get_content_disposition() == "attachment" or part.get_content_maintype() != "text":
            attachments.append(without_empty({"name": name, "content_type": kind}) | {"size": len(payload)})
        elif kind == "text/html":
            pages.append(_decoded(payload, part))
        else:
            plain.append(_decoded(payload, part))
    if not plain and pages:
        from svc_parsers.html_pages import text_of_html

        plain = [text_of_html(page) for page in pages]
    return plain, attachments


def _leaves(message: EmailMessage) -> Iterator[Any]:
    for count, part in enumerate(message.walk()):
        if count >= _MAXIMUM_PARTS:
            return
        if not part.is_multipart():
            yield part


def _decoded(payload: bytes, part: Any) -> str:
    charset = part.get_content_charset() or "utf-8"
    try:
        return payload.decode(charset, "replace").replace("\r\n", "\n")
    except LookupError:
        return payload.decode("latin-1").replace("\r\n", "\n")
