"""E-mail, as it is kept in a file of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import getaddresses, parsedate_to_datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from svc_query.api import InPart, Parser, ParserInput

from svc_parsers.encodings import decode_text
from svc_parsers.shapes import MAXIMUM_TEXT, text_members, without_empty

if TYPE_CHECKING:
    from email.message import EmailMessage

__all__ = ["MailParser", "MailboxParser", "read_mail"]

_MAXIMUM_MESSAGES = 5_000
_MAXIMUM_TEXTS = 3 * MAXIMUM_TEXT
_FROM = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\d\d:\d\d[^\n]*\n")
"""A line that begins a mail: behind an empty one, with a time of day."""
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
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
        return read_mail(content.read())


class MailboxParser(Parser):
    """The mails of a mailbox in one file, as Thunderbird, mutt and archives of lists keep them."""

    name = "mailbox"
    content_types = frozenset({"application/mbox"})
    extensions = frozenset({"mbox"})

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns ``messages``, each as a mail without its ``headers``, and ``text``, that of all of them."""
        encoded = content.read()
        starts = [found.start() for found in _FROM.finditer(encoded)]
        if not starts or starts[0] != 0:
            raise ValueError("it does not begin as a mailbox does")
        messages: list[dict[str, Any]] = []
        left_out = max(0, len(starts) - _MAXIMUM_MESSAGES)
        ends = [*starts[1:], len(encoded)]
        room = _MAXIMUM_TEXTS
        for start, end in islice(zip(starts, ends, strict=True), _MAXIMUM_MESSAGES):
            _, _, mail = encoded[start:end].partition(b"\n")
            try:
                message = read_mail(_QUOTED_FROM.sub(rb"\1", mail)) if room > 0 else {}
            except ValueError:
                message = {}
            message.pop("headers", None)
            room -= len(message.get("text", ""))
            if message and room >= 0:
                messages.append(message)
            else:
                left_out += 1
        texts = (
            text for message in messages for name in ("title", "text") if (text := message.get(name, ""))
        )
        document = {"messages": messages, **text_members(texts, "\n\n")}
        return InPart(document, f"{left_out:,} of its mails are left out") if left_out else document


def read_mail(encoded: bytes) -> dict[str, Any]:
    """Returns what is said of a mail; ValueError where it has no headers."""
    from email import message_from_bytes, policy
    from email.message import EmailMessage

    message = message_from_bytes(encoded, _class=EmailMessage, policy=policy.default)
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
            value = str(message.policy.header_fetch_parse(name, _repaired(str(raw))))
        except Exception:  # noqa: BLE001
            value = _repaired(str(raw))
        found.setdefault(name.lower(), []).append(" ".join(value.split())[:_MAXIMUM_VALUE])
    return found


def _repaired(value: str) -> str:
    """A header whose bytes stand in it as they are, which the library keeps as halves of pairs."""
    try:
        encoded = value.encode("ascii", "surrogateescape")
        return decode_text(encoded).text
    except ValueError:
        return value


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
    stated = part.get_content_charset()
    try:
        text = decode_text(payload, stated).text
    except ValueError:
        text = payload.decode("utf-8", "replace").replace("\0", "")
    return text.replace("\r\n", "\n")
