"""The page of what is indexed: how far that is, the configuration of a directory, and a proposal for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from svc_portal.api import Act, Answer, Message, PortalPage, Redirect, Shown

from svc.errors import AuthRequired, InvalidInput, SvcError
from svc.plugin import EntryKind, Operation, Path, format_path, parse_path, pause
from svc_query.api import INDEX_TYPES, PARSERS, ParserInput
from svc_query.index_configuration import CONFIGURATION_SUFFIX
from svc_query.models import IndexConfigurationBody, StatusQuery
from svc_query.operations import configure_index, show_index_status
from svc_query.portal.documents import pool_of

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["IndexesPage"]

MOST_FAILURES = 20
_SAMPLE = 40
_WALKED = 2_000
_MOST_BYTES = 256 * 1024


class IndexesPage(PortalPage):
    """One directory; the search page leads here."""

    name: ClassVar[str] = "search.indexes"
    path: ClassVar[str] = "search/indexes"
    title: ClassVar[str] = "What is indexed"
    follows: ClassVar[str | None] = "search"

    def show(self, request: PortalRequest) -> Answer:
        """The state, as far as the reader may know it, and the configuration; a form for who may set it."""
        directory = request.query.get("path").strip() or "/"
        values: dict[str, Any] = {
            "directory": directory,
            "here": request.url("search.indexes"),
            "search_url": request.url("search", {"path": directory}),
            "suggest_url": request.url("search.indexes", {"path": directory, "suggest": "1"}),
            "status": None,
            "error": None,
            "configuration": "",
            "reasons": [],
            "is_proposal": False,
            "may_configure": False,
        }
        try:
            path = parse_path(directory)
            values["directory"] = format_path(path)
            values["status"] = request.call(
                show_index_status, StatusQuery(path=directory, limit=MOST_FAILURES)
            )
            values |= _configuration(request, path)
        except AuthRequired:
            raise
        except SvcError as error:
            values["error"] = error.message
        return Shown("indexes.html", values)

    def acts(self) -> Mapping[str, Act]:
        """Stores a configuration."""
        return {"store": _store}

    def refused(self, request: PortalRequest, message: Message) -> Answer:
        """Said on the page of the directory."""
        return Redirect(request.url("search.indexes", {"path": request.form.get("path")}), message)


def _store(request: PortalRequest) -> Answer:
    try:
        configuration = msgspec.json.decode(request.form.require("configuration"), type=dict[str, Any])
    except msgspec.DecodeError:
        raise InvalidInput("The configuration is no JSON object.", field="configuration") from None
    directory = request.form.require("path")
    request.call(configure_index, IndexConfigurationBody(directory, configuration))
    to = request.url("search.indexes", {"path": directory})
    return Redirect(to, Message(f"Files below {directory} are being indexed as it says."))


def _configuration(request: PortalRequest, directory: Path) -> dict[str, Any]:
    """The configuration that is stored, or a proposal where one was asked for."""
    path = (*directory, *CONFIGURATION_SUFFIX)
    version = request.context.version
    entry = version.get(path) if request.may(Operation.READ, path) else None
    may = request.may(Operation.CREATE if entry is None else Operation.UPDATE, path)
    values: dict[str, Any] = {"may_configure": may}
    if entry is not None and entry.kind is EntryKind.FILE and entry.size <= _MOST_BYTES:
        values["configuration"] = version.read_all(entry).decode("utf-8", "replace")
    if may and request.query.get("suggest"):
        values |= _proposal(request, directory)
    return values


def _proposal(request: PortalRequest, directory: Path) -> dict[str, Any]:
    from svc_query.suggesting import suggest_configuration

    types = frozenset(request.plugin.extensions(INDEX_TYPES))
    proposal = suggest_configuration(_samples(request, directory), directory, types)
    if not proposal.files:
        raise InvalidInput("There are no files to look at.", field="path")
    text = msgspec.json.format(msgspec.json.encode(proposal.configuration), indent=2).decode()
    return {"configuration": text, "reasons": proposal.reasons, "is_proposal": True}


def _samples(request: PortalRequest, directory: Path) -> Iterator[tuple[Path, str | None, Any]]:
    """Some of the files that the reader may read, spread over those that come first."""
    from svc_query.commands.sampling import Spread
    from svc_query.parsing import choose_parser

    version = request.context.version
    chosen: Spread[Path] = Spread(_SAMPLE)
    for path, _ in islice(version.walk_files(directory), _WALKED):
        if ".svc-config" not in path and request.may(Operation.READ, path):
            chosen.add(path)
    parsers = {name: extension.value for name, extension in request.plugin.extensions(PARSERS).items()}
    for path in chosen.items:
        pause()
        entry = version.get(path)
        if entry is None or entry.kind is not EntryKind.FILE:
            continue
        parser = choose_parser(parsers, entry.content_type, path[-1], None)
        document = None
        if parser is not None and entry.size <= _MOST_BYTES:
            source = ParserInput(path[-1], entry.content_type, entry.size)
            document = pool_of(request.plugin).parse(parser, version.read_all(entry), source).document
        yield path, entry.content_type, document
