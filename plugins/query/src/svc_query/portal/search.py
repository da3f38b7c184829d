"""The page: words and a few filters, or a whole request as JSON; and what was found, with its plan."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from svc_portal.api import Answer, PortalPage, Shown

from svc.errors import AuthRequired, InvalidInput, SvcError
from svc.plugin import format_path, parse_path
from svc_query.models import QueryBody, SearchBody, StatusQuery
from svc_query.operations import query_files, search_files, show_index_status
from svc_query.portal.saved import saved_searches
from svc_query.portal.showing import shown_answer, shown_row
from svc_query.saving import read_request

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["SearchPage"]

ROWS = 25
_NAMED = 10
_TYPES = 12
_LOOKED_AT = 100
_MOST_COUNTED = 10_000
"""Each of six counts looks at all that matches again."""
_LEAST_TYPED = 3
_DAY_MS = 86_400_000
_PERIODS = {"day": ("the last day", 1), "week": ("the last week", 7), "month": ("the last 30 days", 30)}
_PERIODS["year"] = ("the last year", 365)
_NOTHING: dict[str, Any] = {"names": [], "types": [], "periods": [], "directories": [], "saved": []}
_NOTHING |= {"index": None, "uncounted": None}
_DECODER = msgspec.json.Decoder(dict[str, Any])


class SearchPage(PortalPage):
    """Names and contents of whatever the reader may see."""

    name: ClassVar[str] = "search"
    path: ClassVar[str] = "search"
    title: ClassVar[str] = "Search"
    place: ClassVar[int | None] = 10

    def show(self, request: PortalRequest) -> Answer:
        """The search that the address says, if it says one."""
        said = _Said(request)
        page: dict[str, Any] = {**said.values(), **_NOTHING}
        page |= {"saved": saved_searches(request)} if said.is_empty else _found(request, said)
        return _shown(request, page)

    def act(self, request: PortalRequest) -> Answer:
        """A request as JSON, of a query, or of a search where it has words."""
        text = request.form.require("body")
        page: dict[str, Any] = {**_Said(request).values(), **_NOTHING}
        page["json"] = text
        try:
            body = _body_of(text)
            if request.form.get("explain"):
                body = msgspec.structs.replace(body, explain="analyze")
            page["answer"] = answer = _asked(request, body)
            page["json"] = _pretty(body)
            page["next_body"] = _next_body(body, answer)
        except AuthRequired:
            raise
        except SvcError as error:
            page["error"] = error.message
        return _shown(request, page)


class _Said:
    """What the address says: words, the directory, and filters."""

    def __init__(self, request: PortalRequest) -> None:
        query = request.query
        self.words = query.get("q").strip()
        self.directory = query.get("path").strip() or "/"
        self.content_type = query.get("type")
        self.since = query.get("since") if query.get("since") in _PERIODS else ""
        offset = query.get("offset")
        self.offset = int(offset) if offset.isdecimal() and len(offset) < 10 else 0
        self.explains = bool(query.get("explain"))
        self.is_typed = bool(query.get("typing"))
        self.is_empty = not (self.words or self.content_type or self.since)

    def url(self, request: PortalRequest, **others: Any) -> str:
        """The same search, with something else."""
        said = {"q": self.words, "path": "" if self.directory == "/" else self.directory}
        return request.url("search", {**said, "type": self.content_type, "since": self.since, **others})

    def filters(self, *, typed: bool = True, since: str | None = None) -> list[dict[str, Any]]:
        """The filters beside the words."""
        since = self.since if since is None else since
        found: list[dict[str, Any]] = []
        if self.content_type and typed:
            found.append({"field": "@content_type", "op": "eq", "value": self.content_type})
        if since:
            earliest = int(time.time() * 1000) - _PERIODS[since][1] * _DAY_MS
            found.append({"field": "@updated_at", "op": "gte", "value": earliest})
        return found

    def body(self, *, typed: bool = True, since: str | None = None, **others: Any) -> SearchBody:
        """The search as a request."""
        filters = self.filters(typed=typed, since=since)
        where = filters if filters or not self.words else None
        if self.is_typed:  # what was just written is not worth a wait before the next letter
            others = {"consistency": "eventual", **others}
        return SearchBody(query=self._asked_words() or None, where=where, path=self.directory, **others)

    def _asked_words(self) -> str:
        """While somebody types, the last word is the beginning of one."""
        is_part = self.is_typed and self.words[-3:].isalnum() and len(self.words) >= _LEAST_TYPED
        return f"{self.words}*" if is_part and self.words.count('"') % 2 == 0 else self.words

    def values(self) -> dict[str, Any]:
        """What the form shows again."""
        return {
            "words": self.words,
            "directory": self.directory,
            "content_type": self.content_type,
            "since": self.since,
            "choices": {name: text for name, (text, _) in _PERIODS.items()},
            "is_empty": self.is_empty,
            "offset": self.offset,
            "json": _pretty(self.body(limit=ROWS, offset=self.offset)),
        }


def _found(request: PortalRequest, said: _Said) -> dict[str, Any]:
    explain = "analyze" if said.explains else False
    page: dict[str, Any] = {"explain_url": said.url(request, explain="1")}
    try:
        answer = _asked(request, said.body(limit=ROWS, offset=said.offset, explain=explain))
    except AuthRequired:
        raise
    except SvcError as error:
        page["error"] = error.message
        page["index"] = _index_hint(request, said) if error.details.get("index_type") else None
        page["names"] = _names(request, said) if page["index"] else []
        return page
    page["answer"] = answer
    page["by_names"] = all(name.startswith("@") for row in answer["rows"] for name in row["matched_by"])
    if said.words and page["by_names"]:
        page["index"] = _index_hint(request, said)
    elif said.words and not said.offset:
        page["names"] = _names(request, said)
    if answer["has_more"]:
        page["next_url"] = said.url(request, offset=said.offset + ROWS)
    if said.offset:
        page["first_url"] = said.url(request)
    if (answer["total"] or 0) > _MOST_COUNTED:
        page["uncounted"] = _MOST_COUNTED
    elif not said.is_typed:  # what is counted, and not only found, waits until somebody has typed it
        page["types"] = _types(request, said)
        page["periods"] = _periods(request, said, answer["total"])
        page["directories"] = _directories(request, said)
    return page


def _asked(request: PortalRequest, body: QueryBody | SearchBody) -> dict[str, Any]:
    if isinstance(body, SearchBody):
        return shown_answer(request, request.call(search_files, body))
    return shown_answer(request, request.call(query_files, body))


def _names(request: PortalRequest, said: _Said) -> list[dict[str, Any]]:
    """Files with the words in their names: a search of contents does not look at these."""
    named = {"field": "@filename", "op": "contains", "value": said.words}
    body = QueryBody(path=said.directory, where=[named, *said.filters()], limit=_NAMED)
    try:
        rows = request.call(query_files, body).results
    except InvalidInput:  # no index answers it, and there are too many files to look at each
        return []
    return [shown_row(request, row) for row in rows or []]


def _types(request: PortalRequest, said: _Said) -> list[dict[str, Any]]:
    """The content types of all that matches, the most frequent first, each as a filter."""
    body = said.body(typed=False, aggregate={"group_by": ["@content_type"]}, limit=1_000)
    try:
        groups = request.call(search_files, body).groups or []
    except InvalidInput:  # more than can be counted
        return []
    counted = [(group["count"], group["key"].get("@content_type")) for group in groups]
    known = sorted(((count, name) for count, name in counted if name), key=lambda one: (-one[0], one[1]))
    return [
        {"name": name, "text": "", "count": count, "url": said.url(request, type=name)}
        for count, name in known[:_TYPES]
    ]


def _periods(request: PortalRequest, said: _Said, total: int | None) -> list[dict[str, Any]]:
    """How much of it was changed of late, each as a filter."""
    found: list[dict[str, Any]] = []
    for name, (text, _) in _PERIODS.items():
        body = said.body(since=name, aggregate={"count": True})
        try:
            count = request.call(search_files, body).count
        except InvalidInput:  # more than can be counted
            return []
        if count and (not found or found[-1]["count"] != count):
            found.append({"name": name, "text": text, "count": count, "url": said.url(request, since=name)})
        if count == total and not said.since:
            break  # a longer time has no more
    return found


def _directories(request: PortalRequest, said: _Said) -> list[dict[str, Any]]:
    """Where the best of it lies: the directories right below the one that is searched."""
    try:
        rows = request.call(search_files, said.body(limit=_LOOKED_AT)).results or []
    except InvalidInput:
        return []
    base = parse_path(said.directory)
    paths = (parse_path(row["path"]) for row in rows if row.get("path"))
    counted = Counter(path[len(base)] for path in paths if len(path) > len(base) + 1)
    return [
        {"name": name, "text": "", "count": count, "url": said.url(request, path=format_path((*base, name)))}
        for name, count in counted.most_common(_TYPES)
    ]


def _index_hint(request: PortalRequest, said: _Said) -> dict[str, Any]:
    """What of the contents is indexed here, as far as the reader may know: None where that is not told."""
    try:
        status = request.call(show_index_status, StatusQuery(path=said.directory, limit=1))
    except AuthRequired:
        raise
    except SvcError:
        return {"fields": None, "waiting": 0}
    fields = sorted({index.field for index in status.indexes if index.type == "fulltext"})
    return {"fields": fields, "waiting": status.waiting}


def _body_of(text: str) -> QueryBody | SearchBody:
    try:
        return read_request(_DECODER.decode(text))
    except msgspec.DecodeError as error:
        raise InvalidInput(f"This is no request: {str(error).replace('`', '')}.", field="body") from None


def _next_body(body: QueryBody | SearchBody, answer: dict[str, Any]) -> str | None:
    if not answer["has_more"]:
        return None
    if isinstance(body, QueryBody) and answer["next_cursor"]:
        return _pretty(msgspec.structs.replace(body, after=answer["next_cursor"], before=None, offset=0))
    rows = len(answer["rows"]) or len(answer["groups"])
    return _pretty(msgspec.structs.replace(body, offset=body.offset + rows))


def _pretty(body: QueryBody | SearchBody) -> str:
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode()


def _shown(request: PortalRequest, page: dict[str, Any]) -> Shown:
    usual = {"error": None, "answer": None, "by_names": False, "next_body": None}
    urls = {"next_url": None, "first_url": None, "explain_url": None, "here": request.url("search")}
    urls |= {"build_url": request.url("search.build")}
    urls |= {"index_url": request.url("search.indexes", {"path": page["directory"]})}
    return Shown("search.html", {**usual, **urls, **page})
