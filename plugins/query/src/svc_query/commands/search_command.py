"""``svc search``: full text over everything that is indexed, best first, with what was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from svc.plugin import format_path, parse_path
from svc_cli import Source, counted, json_option, print_json, source_options
from svc_query.answers import FoundBySearch
from svc_query.commands.contents import Document, fitting, open_queries, patiently, say_progress
from svc_query.commands.options import filter_of
from svc_query.commands.snippets import marked
from svc_query.commands.tables import cell_text, print_lines
from svc_query.models import SearchBody
from svc_query.operations import search_files

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["search"]

_MOST_SNIPPETS = 3


@click.command(short_help="Finds files by words, the best first.")
@click.argument("words", nargs=-1, required=True)
@click.option("--path", default="/", show_default=True, help="Search below this directory only.")
@click.option(
    "--where", metavar="EXPRESSION", help="A filter that the files must meet too, as for 'svc query'."
)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1_000), default=10, show_default=True, help="Most files."
)
@click.option("--offset", type=click.IntRange(0), default=0, help="Files to leave out first.")
@source_options
@json_option
def search(
    *,
    words: tuple[str, ...],
    path: str,
    where: str | None,
    limit: int,
    offset: int,
    source: Source,
    as_json: bool,
) -> None:
    """Shows the files that WORDS are found in, the best first, and where in them.

    All words must be there; "a phrase" in quotes, -word for one that must not be there, OR between
    alternatives, prefix*. Quote them for the shell; behind -- they may begin with a dash.
    """
    request: Document = {
        "query": " ".join(words),
        "path": format_path(parse_path(path)),
        "limit": limit,
    }
    if offset:
        request["offset"] = offset
    if where is not None:
        request["where"] = filter_of(where, None, pointed=not as_json)
    with open_queries(source) as service:
        found = patiently(lambda: service.call(search_files, SearchBody(**request)))
    answer: Document = msgspec.to_builtins(found)
    fitting(answer, FoundBySearch)
    say_progress(answer)
    if as_json:
        print_json(answer)
        return
    print_lines(_lines(answer["results"]))
    if not answer["results"]:
        click.echo(
            "svc: nothing found. The contents of files are searched where an indexes.json has a field of the "
            "type 'fulltext': 'svc index suggest PATH --write' makes one.",
            err=True,
        )
    shown, total = len(answer["results"]), answer.get("total_count")
    if answer.get("has_more"):
        of = f" of {total:,}" if total is not None else ""
        click.echo(f"svc: {counted(shown, 'file')}{of} shown; -n and --offset show more.", err=True)


def _lines(results: list[Document]) -> Iterator[Text]:
    from rich.text import Text

    for number, row in enumerate(results):
        if number:
            yield Text("")
        line = Text(cell_text("path", row["path"]), style="bold cyan")
        line.append(f"  {cell_text('score', row['score'])}", style="green")
        yield line
        for match in _with_snippets(row.get("matches") or ())[:_MOST_SNIPPETS]:
            shown = Text("  ")
            shown.append(f"{cell_text('field', match.get('field'))}: ", style="dim")
            shown.append_text(marked(match["snippet"], match.get("highlights") or ()))
            yield shown


def _with_snippets(matches: Any) -> list[Document]:
    """Those matches that show something, each text once."""
    found: dict[str, Document] = {}
    for match in matches:
        if match.get("snippet"):
            found.setdefault(str(match["snippet"]), match)
    return list(found.values())
