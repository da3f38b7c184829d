"""Previews of mail and of office documents: the text and the facts that a parser finds in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import msgspec
from svc_portal.api import Preview, PreviewedFile

from svc.plugin import Database, PluginContext
from svc_query.api import PARSERS, ParserInput
from svc_query.asking import settings_of
from svc_query.parsing import ParserPool, choose_parser

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["DocumentPreview", "pool_of"]

MOST_BYTES = 16 * 1024 * 1024
MOST_TEXT = 100_000
MOST_FACTS = 40
MOST_FACT = 500
_IDLE_SECONDS = 5.0
_OWN = frozenset(("text", "truncated"))

_pools: WeakKeyDictionary[Database, ParserPool] = WeakKeyDictionary()
# For whom a document is read now: one at a time, so that nobody waits for more than one of each other reader.
_readers: WeakKeyDictionary[Database, set[str]] = WeakKeyDictionary()


class DocumentPreview(Preview):
    """What a person reads in a file that no browser shows, as far as a parser in use can tell."""

    name: ClassVar[str] = "query.document"
    content_types: ClassVar[tuple[str, ...]] = ("application/*", "message/rfc822", "text/rtf")
    template: ClassVar[str] = "document.html"

    def values(self, request: PortalRequest, file: PreviewedFile) -> Mapping[str, Any] | None:
        """Parses the file in a process with limits; none where no parser reads it, or it is large."""
        context = request.plugin
        parsers = {name: extension.value for name, extension in context.extensions(PARSERS).items()}
        parser = choose_parser(parsers, file.content_type, file.path[-1], None)
        if parser is None or not 0 < file.size <= MOST_BYTES:
            return None
        source = ParserInput(file.path[-1], file.content_type, file.size)
        reader = request.identity.user_id or request.identity.name
        readers = _readers.setdefault(context.database, set())
        if reader in readers:
            return _failed("Another document is being read for you: open this one again in a moment.")
        readers.add(reader)
        try:
            result = pool_of(context).parse(parser, file.read(file.size), source)
        finally:
            readers.discard(reader)
        if result.failure is not None:
            return _failed(result.failure)
        return {"failure": result.part, **_shown(result.document)}


def _failed(why: str) -> dict[str, Any]:
    return {"failure": why, "facts": [], "text": "", "is_whole": True}


def pool_of(context: PluginContext) -> ParserPool:
    """Returns what parses for pages: one process at a time, so that pages wait for each other alone."""
    pool = _pools.get(context.database)
    if pool is None:
        settings = msgspec.structs.replace(settings_of(context), parsers_at_once=1)
        pool = _pools.setdefault(context.database, ParserPool(settings, idle_seconds=_IDLE_SECONDS))
    return pool


def _shown(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        return {"facts": [], **_text(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())}
    text = document.get("text")
    facts = [(name, _fact(value)) for name, value in document.items() if name not in _OWN and value != []]
    return {"facts": facts[:MOST_FACTS], **_text(text if isinstance(text, str) else "")}


def _text(text: str) -> dict[str, Any]:
    return {"text": text[:MOST_TEXT], "is_whole": len(text) <= MOST_TEXT}


def _fact(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MOST_FACT else f"{text[:MOST_FACT]}…"
