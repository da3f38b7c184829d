"""What commands read and write beside operations: files of the database, and samples of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from svc.errors import NotFound, ServiceUnavailable, SvcError
from svc.plugin import EntryKind, Path, Version, parse_path
from svc_cli import Service, Source, counted
from svc_query.answers import answer_form
from svc_query.commands.sampling import MAXIMUM_SAMPLE, Spread, parse_plainly
from svc_query.models import QueryBody
from svc_query.operations import query_files

__all__ = [
    "Document",
    "Sample",
    "ask",
    "fitting",
    "index_types",
    "open_queries",
    "patiently",
    "read_file",
    "samples_of",
    "say_progress",
    "write_file",
]

Document = dict[str, Any]
R = TypeVar("R")

_STANDING_SECONDS = 60.0
_MOST_PAUSE = 5.0
_MOST_LISTED = 200_000
_MOST_LISTED_OF_SERVER = 20_000


class Sample(NamedTuple):
    """A file that ``svc index suggest`` looks at; ``document`` is None when no parser makes one of it."""

    path: Path
    content_type: str | None
    document: Any


@contextmanager
def open_queries(source: Source, *, writable: bool = False) -> Iterator[Service]:
    """Opens what a command asks, for as long as the context lasts; errors name their path."""
    try:
        with source.open_service("query", read_only=not writable) as service:
            yield service
    except SvcError as error:
        path = error.details.get("path")
        if isinstance(path, str) and path not in error.message:
            error.message = f"{path}: {error.message}"
        raise


def ask(service: Service, request: Document) -> Document:
    """Returns what a query answers, as JSON has it.

    Raises ServiceUnavailable where the answer does not fit the question: no server of svc gave it.
    """
    found = patiently(lambda: service.call(query_files, QueryBody(**request)))
    answer: Document = msgspec.to_builtins(found)
    fitting(answer, answer_form(request))
    return answer


def patiently(call: Callable[[], R]) -> R:
    """Returns what a call returns, once the index holds what was written before; says that it waits. Blocks.

    Raises what the call raises; ServiceUnavailable only where the index has not got on for a minute.
    """
    least: int | None = None
    moved = time.monotonic()
    while True:
        try:
            return call()
        except ServiceUnavailable as error:
            details = error.details
            left = details.get("files_waiting", details.get("commits_behind"))
            if not isinstance(left, int):
                raise
            if least is None:
                what = "changed file" if "files_waiting" in details else "commit"
                click.echo(
                    f"svc: the index has still to read {counted(left, what)}; waiting for it.", err=True
                )
            if least is None or left < least:
                least, moved = left, time.monotonic()
            elif time.monotonic() - moved > _STANDING_SECONDS:
                raise
            asked = details.get("retry_after")
            time.sleep(min(float(asked), _MOST_PAUSE) if isinstance(asked, int | float) else 1.0)


def say_progress(answer: Document) -> None:
    """Says on standard error that an index is still being made, where an answer tells so."""
    meta = answer.get("meta") or {}
    if meta.get("reindexing") in (None, False):
        return
    done, total = meta.get("reindexing_indexed"), meta.get("reindexing_total")
    number = "" if total is None else f" ({done} of {total} files)"
    click.echo(
        f"svc: the index is still being made{number}: more may be found later. 'svc index status' shows how "
        "far it is.",
        err=True,
    )


def fitting(answer: Document, form: type[msgspec.Struct]) -> None:
    """Raises ServiceUnavailable where an answer has not the members that commands rely on."""
    try:
        msgspec.convert(answer, form)
    except msgspec.ValidationError:
        raise ServiceUnavailable("The answer is not one that an svc server gives.") from None


def read_file(service: Any, source: Source, path: Path) -> bytes | None:
    """Returns the content of a file; None when there is none."""
    if source.is_remote:
        return _content_of(service, path)
    version = service.database.at()
    entry = version.get(path)
    return None if entry is None or entry.kind is not EntryKind.FILE else version.read_all(entry)


def write_file(service: Any, source: Source, path: Path, content: bytes) -> None:
    """Stores a JSON file."""
    if source.is_remote:
        service.files.put(path, content, content_type="application/json")
        return
    with service.database.transaction(message="svc index suggest") as transaction:
        transaction.put(path, content, content_type="application/json")


def index_types(service: Any, source: Source) -> frozenset[str] | None:
    """Returns the names of the index types that there are; None: a server refuses what it has not."""
    from svc_query.api import INDEX_TYPES
    from svc_query.indexing.view import view_of

    if source.is_remote:
        return None
    return frozenset(view_of(service.database).context.extensions(INDEX_TYPES))


def samples_of(service: Any, source: Source, path: Path, count: int) -> Iterator[Sample]:
    """Yields files below a directory, spread over it; of a server over the first of them that it lists."""
    return (_of_server if source.is_remote else _of_file)(service, path, count)


def _content_of(client: Any, path: Path) -> bytes | None:
    try:
        content: bytes = client.files.read(path)
    except NotFound:
        return None
    return content


def _of_server(client: Any, path: Path, count: int) -> Iterator[Sample]:
    chosen: Spread[tuple[Path, str | None, int]] = Spread(count)
    for seen, entry in enumerate(client.files.list(path, depth=-1)):
        if seen >= _MOST_LISTED_OF_SERVER:
            break
        if entry.entry_type == EntryKind.FILE:
            chosen.add((parse_path(entry.path), entry.content_type, entry.size or 0))
    for where, content_type, size in chosen.items:
        document = None
        if size <= MAXIMUM_SAMPLE:
            content = _content_of(client, where)
            document = None if content is None else parse_plainly(where, content_type, content)
        yield Sample(where, content_type, document)


def _of_file(service: Any, path: Path, count: int) -> Iterator[Sample]:
    from svc_query.api import PARSERS
    from svc_query.asking import settings_of
    from svc_query.indexing.view import view_of
    from svc_query.parsing import ParserPool

    version = service.database.at()
    chosen: Spread[Path] = Spread(count)
    for number, (found, entry) in enumerate(version.walk_files(path)):
        if number >= _MOST_LISTED:
            break
        if entry is not None and ".svc-config" not in found:
            chosen.add(found)
    context = view_of(service.database).context
    parsers = {name: extension.value for name, extension in context.extensions(PARSERS).items()}
    pool = ParserPool(settings_of(context))
    try:
        for found in chosen.items:
            yield _sample(version, found, parsers, pool)
    finally:
        pool.close()


def _sample(version: Version, path: Path, parsers: dict[str, Any], pool: Any) -> Sample:
    from svc_query.api import ParserInput
    from svc_query.parsing import choose_parser

    entry = version.get(path)
    if entry is None or entry.kind is not EntryKind.FILE:
        return Sample(path, None, None)
    parser = choose_parser(parsers, entry.content_type, path[-1], None)
    document: Any = None
    if parser is not None and entry.size <= MAXIMUM_SAMPLE:
        source = ParserInput(path[-1], entry.content_type, entry.size)
        document = pool.parse(parser, version.read(entry), source).document
    return Sample(path, entry.content_type, document)
