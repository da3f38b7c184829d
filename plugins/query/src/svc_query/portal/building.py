"""The page that builds a query: conditions in rows become a filter as the shell has it, and as JSON."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from svc_portal.api import Act, Answer, Message, PortalPage, Redirect, Shown

from svc.errors import AuthRequired, InvalidInput, SvcError
from svc.plugin import format_path, parse_path
from svc_query.models import SaveSearchBody, StatusQuery
from svc_query.operations import save_search, show_index_status
from svc_query.syntax import parse_filter
from svc_query.syntax.tokens import is_word

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["BuilderPage"]

MOST_CONDITIONS = 20
_MOST_FIELDS = 200
_OPERATORS = {
    "=": "is",
    "!=": "is not",
    "~": "contains",
    "!~": "does not contain",
    "^=": "begins with",
    ">": "is greater than, or after",
    ">=": "is at least, or from",
    "<": "is less than, or before",
    "<=": "is at most, or until",
    "similar": "is similar to",
    "sounds like": "sounds like",
    "search": "has the words",
    "exists": "is there",
    "missing": "is not there",
}
_WITHOUT_VALUE = frozenset(("exists", "missing"))
_TEXT_ONLY = frozenset(("~", "!~", "^=", "similar", "sounds like", "search"))
_VIRTUAL = (
    *("@filename", "@path", "@extension", "@content_type", "@size", "@created_at", "@updated_at", "@hash"),
)
_LITERAL = re.compile(
    r"[+-]?\d+(\.\d+)?([KMGT]i?B)?|\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?|true|false|null"
)


class BuilderPage(PortalPage):
    """A form of conditions; what it makes can be asked, saved, or taken to a shell."""

    name: ClassVar[str] = "search.build"
    path: ClassVar[str] = "search/build"
    title: ClassVar[str] = "Build a query"
    follows: ClassVar[str | None] = "search"

    def show(self, request: PortalRequest) -> Answer:
        """The conditions that the address has, and one more to fill in."""
        query = request.query
        rows = [row for number in range(MOST_CONDITIONS) if (row := _row(request, number))["field"]]
        joined = "or" if query.get("joined") == "or" else "and"
        directory = query.get("path").strip() or "/"
        text = query.get("expression") if "expression" in query else f" {joined} ".join(map(_condition, rows))
        made: dict[str, Any] = {"json": "", "command": "", "error": None}
        if text:
            try:
                path = format_path(parse_path(directory))
                body = {"path": path, "where": parse_filter(text)}
                made["json"] = msgspec.json.format(msgspec.json.encode(body), indent=2).decode()
                made["command"] = f"svc query {shlex.quote(path)} {shlex.quote(text)}"
            except SvcError as error:
                made["error"] = error.message
        values = {
            **made,
            "rows": [*rows, {"field": "", "op": "=", "value": ""}][:MOST_CONDITIONS],
            "joined": joined,
            "directory": directory,
            "expression": text,
            "operators": _OPERATORS,
            "fields": _fields(request, directory),
            "here": request.url("search.build"),
            "search_url": request.url("search"),
        }
        return Shown("build.html", values)

    def acts(self) -> Mapping[str, Act]:
        """Saves a request."""
        return {"save": _save}


def _save(request: PortalRequest) -> Answer:
    try:
        said = msgspec.json.decode(request.form.require("body"), type=dict[str, Any])
    except msgspec.DecodeError:
        raise InvalidInput("This is no JSON object.", field="body") from None
    saved = request.call(save_search, SaveSearchBody(request.form.require("name"), said))
    verb = "Saved" if saved.created else "Replaced"
    to = request.entry_url(parse_path(saved.path)) or request.url("search")
    return Redirect(to, Message(f"{verb} the search {saved.path}."))


def _row(request: PortalRequest, number: int) -> dict[str, str]:
    op = request.query.get(f"op-{number}")
    return {
        "field": request.query.get(f"field-{number}").strip(),
        "op": op if op in _OPERATORS else "=",
        "value": request.query.get(f"value-{number}"),
    }


def _condition(row: Mapping[str, str]) -> str:
    """A condition as the shell has it."""
    field = (
        row["field"] if is_word(row["field"]) and row["field"].lower() not in ("and", "or", "not") else None
    )
    name = _quoted(row["field"], "`") if field is None else field
    if row["op"] in _WITHOUT_VALUE:
        return f"{name} {row['op']}"
    value = row["value"].strip()
    is_literal = row["op"] not in _TEXT_ONLY and _LITERAL.fullmatch(value)
    return f"{name} {row['op']} {value if is_literal else _quoted(row['value'], chr(34))}"


def _quoted(text: str, quote: str) -> str:
    escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    for character, letter in (("\n", "n"), ("\t", "t"), ("\r", "r")):
        escaped = escaped.replace(character, f"\\{letter}")
    return f"{quote}{escaped}{quote}"


def _fields(request: PortalRequest, directory: str) -> list[str]:
    """What can be asked for: what every file has, and what is indexed, as far as the reader may know."""
    try:
        status = request.call(show_index_status, StatusQuery(path=directory, limit=1))
    except AuthRequired:
        raise
    except SvcError:
        return list(_VIRTUAL)
    indexed = sorted({index.field for index in status.indexes if not index.field.startswith("@")})
    return [*_VIRTUAL, *indexed[:_MOST_FIELDS]]
