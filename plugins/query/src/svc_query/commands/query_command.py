"""``svc query``: files whose fields meet a filter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from svc.errors import UsageError
from svc.plugin import format_path, parse_path
from svc_cli import (
    Service,
    Source,
    counted,
    json_option,
    print_json,
    source_options,
    terminal_text,
)
from svc_query.commands.contents import Document, ask, open_queries, say_progress
from svc_query.commands.options import aggregate_of, fields_of, filter_of, orders_of
from svc_query.commands.plans import plan_lines
from svc_query.commands.tables import columns_of, print_csv, print_rows

__all__ = ["query"]

_PAGE = 1_000
_DEFAULT_ROWS = 20
_COLUMNS = ("path", "total_size", "updated_at")
_SCORED = ("path", "score", "matched_by", "total_size", "updated_at")


@click.command(short_help="Finds files by the values of their fields.")
@click.argument("path")
@click.argument("expression", required=False)
@click.option("--where", metavar="JSON", help="The filter as JSON; with EXPRESSION, both must hold.")
@click.option("--order", multiple=True, metavar="FIELD[:desc]", help="Sort by fields, parted by commas.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0),
    default=_DEFAULT_ROWS,
    show_default=True,
    help="Most rows or groups; 0 means all.",
)
@click.option("--offset", type=click.IntRange(0), default=0, help="Rows to leave out first.")
@click.option("--select", multiple=True, metavar="FIELDS", help="Show these fields, parted by commas.")
@click.option("--count", is_flag=True, help="Show only how many there are.")
@click.option("--group-by", multiple=True, metavar="FIELDS", help="Count the files of each value.")
@click.option("--sum", "sums", multiple=True, metavar="FIELDS", help="Show the sums of fields.")
@click.option("--avg", "averages", multiple=True, metavar="FIELDS", help="Show their averages.")
@click.option("--min", "least", multiple=True, metavar="FIELDS", help="Show their least values.")
@click.option("--max", "greatest", multiple=True, metavar="FIELDS", help="Show their greatest values.")
@click.option(
    "--explain",
    type=click.Choice(["plan", "analyze"]),
    is_flag=False,
    flag_value="plan",
    help="Show how it is answered; 'analyze' also does it and shows times.",
)
@click.option("--snapshot", metavar="NAME", help="Of this snapshot, without indexes.")
@click.option("--version", metavar="HEX", help="Of this version, without indexes.")
@click.option("--fork", metavar="NAME", help="Of this fork, without indexes.")
@click.option("--eventual", is_flag=True, help="Don't wait until what was just written is indexed.")
@click.option("--show-json", is_flag=True, help="Show the filter as JSON and do nothing.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@source_options
@json_option
def query(
    *,
    path: str,
    expression: str | None,
    where: str | None,
    limit: int,
    offset: int,
    explain: str | None,
    show_json: bool,
    as_csv: bool,
    as_json: bool,
    source: Source,
    **options: Any,
) -> None:
    """Shows the files at and below PATH that meet EXPRESSION, such as 'year > 1990 and title ~ "war"'.

    Without one, all that are indexed there. The language is described in the documentation, under
    "Query language".
    """
    conditions = filter_of(expression, where, pointed=not as_json)
    if show_json:
        print_json(conditions)
        return
    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other.")
    request = _request(path, conditions, options)
    select = request.get("select", [])
    with open_queries(source) as service:
        if explain is not None:
            _explain(service, {**request, "limit": limit or _PAGE, "explain": explain}, as_json)
        elif "aggregate" in request:
            _aggregate(service, request, limit, as_csv=as_csv, as_json=as_json)
        else:
            rows = _Rows(service, request, limit, offset)
            _print_found(rows, select, as_csv=as_csv, as_json=as_json)


def _request(path: str, conditions: Any, options: dict[str, Any]) -> Document:
    request: Document = {"path": format_path(parse_path(path)), "where": conditions}
    for name in ("snapshot", "version", "fork"):
        given = options.pop(name)
        if given is not None:
            request[name] = given
    if options.pop("eventual"):
        request["consistency"] = "eventual"
    order = orders_of(options.pop("order"))
    if order:
        request["order_by"] = order
    select = fields_of(options.pop("select"))
    if select:
        request["select"] = select
    aggregate = aggregate_of(**options)
    if aggregate is not None:
        request["aggregate"] = aggregate
    return request


class _Rows:
    def __init__(self, service: Service, request: Document, limit: int, offset: int) -> None:
        self._service = service
        self._request = request
        self._limit = limit
        self._offset = offset
        self.last: Document = {}

    def __iter__(self) -> Iterator[Document]:
        seen, place = 0, {"offset": self._offset} if self._offset else {}
        while True:
            wanted = _PAGE if self._limit == 0 else min(_PAGE, self._limit - seen)
            self.last = ask(self._service, {**self._request, **place, "limit": wanted})
            yield from self.last["results"]
            seen += len(self.last["results"])
            if not self.last["has_more"] or (self._limit and seen >= self._limit):
                return
            place = {"after": self.last["next_cursor"]}


def _print_found(rows: _Rows, select: list[str], *, as_csv: bool, as_json: bool) -> None:
    if as_csv and select:
        # A page at a time; what the columns are is known.
        print_csv([_member(name) for name in select], rows)
        say_progress(rows.last)
        return
    found = list(rows)
    say_progress(rows.last)
    if as_json:
        print_json({**rows.last, "results": found})
        return
    if select:
        columns = tuple(dict.fromkeys((*map(_member, select), *columns_of(found))))
    else:
        columns = _SCORED if any(row["score"] != 1 for row in found) else _COLUMNS
    if as_csv:
        print_csv(tuple(columns_of(found)) or columns, found)
        return
    print_rows(columns, found)
    _say_more(rows.last, len(found))


def _member(field: str) -> str:
    """How a row calls a field."""
    return {"@size": "total_size"}.get(field, field.removeprefix("@") if field in _VIRTUAL else field)


_VIRTUAL = frozenset(
    ("@path", "@score", "@size", "@content_type", "@created_at", "@updated_at", "@matched_by")
)


def _say_more(answer: Document, shown: int) -> None:
    if answer.get("has_more"):
        click.echo(f"svc: the first {counted(shown, 'row')} are shown; -n 0 shows all.", err=True)


def _aggregate(service: Service, request: Document, limit: int, *, as_csv: bool, as_json: bool) -> None:
    asked = request["aggregate"]
    answer = ask(service, {**request, "limit": limit or _PAGE})
    say_progress(answer)
    if as_json:
        print_json(answer)
        return
    if "group_by" not in asked:
        if asked == {"count": True} and not as_csv:
            click.echo(answer["count"])
            return
        row = _flat(answer, asked)
        print_csv(tuple(row), [row]) if as_csv else print_rows(tuple(row), [row])
        return
    rows = [{**group["key"], **_flat(group, asked)} for group in answer["groups"]]
    columns = tuple(columns_of(rows))
    print_csv(columns, rows) if as_csv else print_rows(columns, rows)
    if answer.get("has_more") and not as_csv:
        click.echo(f"svc: the first {counted(len(rows), 'group')} are shown; -n shows more.", err=True)


def _flat(sums: Document, asked: Document) -> Document:
    row: Document = {"count": sums["count"]} if asked.get("count") else {}
    for name in ("sum", "avg", "min", "max"):
        for field in asked.get(name, ()):
            row[f"{name}({field})"] = sums[name].get(field)
    return row


def _explain(service: Service, request: Document, as_json: bool) -> None:
    answer = ask(service, request)
    if as_json:
        print_json(answer)
        return
    for line in plan_lines(answer["plan"]):
        click.echo(terminal_text(line))
    if "results" in answer:
        click.echo(f"\n{counted(len(answer['results']), 'row')}")
