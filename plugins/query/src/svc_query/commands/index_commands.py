"""``svc index``: what is indexed, how far that is, and what should be."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import msgspec

from svc.errors import AlreadyExists, NotFound
from svc.plugin import Path, format_path, parse_path
from svc_cli import (
    Service,
    Source,
    json_option,
    print_json,
    print_table,
    source_options,
    terminal_text,
)
from svc_query.commands.contents import (
    Document,
    index_types,
    open_queries,
    read_file,
    samples_of,
    write_file,
)
from svc_query.commands.statuses import status_lines
from svc_query.index_configuration import CONFIGURATION_SUFFIX
from svc_query.models import RebuildBody, StatusQuery
from svc_query.operations import rebuild_index, show_index_status

__all__ = ["index"]

_PAGE = 1_000
_SAMPLE = 1_000


@click.group(short_help="Shows, makes anew and proposes indexes.")
def index() -> None:
    """Shows what is indexed and how far that is, makes it anew, and proposes what to index."""


@index.command(short_help="Shows what is indexed, and how far that is.")
@click.argument("path", default="/")
@source_options
@json_option
def status(*, path: str, source: Source, as_json: bool) -> None:
    """Shows the configurations at and below PATH, the indexes, work that goes on, and files that failed."""
    where = parse_path(path)
    with open_queries(source) as service:
        document = _whole_status(service, where)
    if as_json:
        print_json(document)
        return
    for line in status_lines(document):
        click.echo(line)


@index.command(short_help="Makes the indexes of a directory anew.")
@click.argument("path", default="/")
@source_options
@json_option
def rebuild(*, path: str, source: Source, as_json: bool) -> None:
    """Reads all files at and below PATH again and indexes them anew; for root.

    On a file the command does it; a server does it in the background, and 'svc index status' shows how far.
    """
    with open_queries(source, writable=True) as service:
        answer = service.call(rebuild_index, RebuildBody(format_path(parse_path(path))))
    if as_json:
        print_json(answer)
    elif source.is_remote:
        click.echo(f"The server indexes {terminal_text(path)} anew; 'svc index status' shows how far it is.")
    else:
        click.echo(f"{terminal_text(path)} is indexed anew.")


@index.command(short_help="Shows the configuration that holds for a path.")
@click.argument("path", default="/")
@source_options
@json_option
def show(*, path: str, source: Source, as_json: bool) -> None:
    """Shows the fields of files in the directory PATH, or of the file PATH, and where each comes from.

    The nearest configuration above a file decides, for each field.
    """
    where = parse_path(path)
    with open_queries(source) as service:
        found = list(_configurations(service, source, where))
    fields: dict[str, Document] = {}
    for directory, configuration in found:
        for entry in configuration.get("indexes", ()):
            fields.setdefault(
                entry["name"],
                {**entry, "from": format_path(directory), "glob": configuration.get("glob")},
            )
    if as_json:
        print_json({"path": format_path(where), "fields": list(fields.values())})
        return
    if not found:
        click.echo(
            "No configuration is stored here or above; the default one holds: the fields that begin with @."
        )
        return
    rows: list[tuple[str, ...]] = [("FIELD", "TYPES", "VALUES", "SOURCE", "FILES", "FROM")]
    rows += [tuple(map(terminal_text, _field_row(entry))) for entry in fields.values()]
    print_table(rows)


@index.command(short_help="Proposes a configuration for a directory.")
@click.argument("path", default="/")
@click.option(
    "--sample",
    type=click.IntRange(1, 100_000),
    default=_SAMPLE,
    show_default=True,
    help="Most files to look at.",
)
@click.option("--write", is_flag=True, help="Store the proposal; never in place of a configuration.")
@source_options
@json_option
def suggest(*, path: str, sample: int, write: bool, source: Source, as_json: bool) -> None:
    """Looks at some files below PATH and prints an indexes.json for it, with a reason for each type.

    The configuration goes to standard output and the reasons to standard error; with --json both are one
    document.
    """
    from svc_query.suggesting import suggest_configuration

    where = parse_path(path)
    place = (*where, *CONFIGURATION_SUFFIX)
    with open_queries(source, writable=write) as service:
        if write and read_file(service, source, place) is not None:
            raise AlreadyExists("There is a configuration already; change it there.", path=format_path(place))
        found = suggest_configuration(
            samples_of(service, source, where, sample), where, index_types(service, source)
        )
        if not found.files:
            raise NotFound("There are no files to look at.", path=format_path(where))
        text = json.dumps(found.configuration, indent=2, ensure_ascii=False) + "\n"
        if write:
            write_file(service, source, place, text.encode())
    if as_json:
        print_json({"configuration": found.configuration, "reasons": found.reasons, "files": found.files})
        return
    click.echo("\n".join(map(terminal_text, text.splitlines())))
    for reason in found.reasons:
        name = terminal_text(reason["field"])
        click.echo(f"svc: {name}: {terminal_text(reason['reason'])}", err=True)
    if write:
        click.echo(f"svc: stored at {format_path(place)}", err=True)


def _configurations(service: Service, source: Source, where: Path) -> Iterator[tuple[Path, Document]]:
    """The configurations at and above a path, the nearest first."""
    for length in range(len(where), -1, -1):
        content = read_file(service, source, (*where[:length], *CONFIGURATION_SUFFIX))
        if content is None:
            continue
        try:
            configuration = json.loads(content)
            names = [entry["name"] for entry in configuration["indexes"]]
            if all(isinstance(name, str) for name in names):
                yield where[:length], configuration
        except (ValueError, TypeError, KeyError, RecursionError):
            # One that is not valid counts as absent.
            shown = format_path((*where[:length], *CONFIGURATION_SUFFIX))
            click.echo(f"svc: {terminal_text(shown)} is not valid, and counts as absent.", err=True)


def _field_row(entry: Document) -> tuple[str, ...]:
    types = entry.get("type", ())
    source = entry.get("source")
    return (
        entry["name"],
        types if isinstance(types, str) else ", ".join(map(str, types)),
        str(entry.get("value_type", "auto")),
        "" if source is None else json.dumps(source, ensure_ascii=False),
        entry.get("glob") or "*",
        entry["from"],
    )


def _whole_status(service: Service, where: Path) -> Document:
    asked = StatusQuery(path=format_path(where), limit=_PAGE)
    first = page = service.call(show_index_status, asked)
    whole: Document = msgspec.to_builtins(page)
    while page.has_more and page.failures:
        page = service.call(show_index_status, msgspec.structs.replace(asked, after=page.failures[-1].path))
        whole["failures"] += msgspec.to_builtins(page.failures)
    page = first
    while page.more_guessed and page.guessed:
        page = service.call(show_index_status, msgspec.structs.replace(asked, after=page.guessed[-1].path))
        whole["guessed"] += msgspec.to_builtins(page.guessed)
    del whole["has_more"], whole["more_guessed"]
    return whole
