"""``svc log``, ``svc show``, ``svc history`` and ``svc blame``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import msgspec
from msgspec import UNSET

from svc.errors import CorruptRecord, NotFound
from svc.plugin import EntryKind, Page, Path, format_path, is_system_path, parse_path
from svc_cli import (
    Service,
    Source,
    UserNames,
    json_option,
    print_json,
    print_table,
    source_options,
    terminal_text,
    time_text,
)
from svc_history.models import (
    BlameQuery,
    CommitDetails,
    CompareQuery,
    HistoryQuery,
    LogQuery,
    PageQuery,
    PathChange,
)
from svc_history.operations import (
    blame_path,
    compare_versions,
    list_commits,
    show_commit,
    show_history,
)

__all__ = ["blame", "history", "log", "show"]

_PAGE = 1_000
_DEFAULT_ROWS = 20
_HASH = 12
_HISTORY_HEADERS = ("VERSION", "TIME", "USER", "CHANGE", "SIZE", "SNAPSHOT OR MESSAGE")
_MOST_NAMED = 5
_DAMAGED = "(its record is damaged)"
_MARKS = {"added": "A", "modified": "M", "deleted": "D"}


def _rows_option(command: Callable[..., Any]) -> Callable[..., Any]:
    option = click.option(
        "-n",
        "--limit",
        type=click.IntRange(0),
        default=_DEFAULT_ROWS,
        show_default=True,
        help="Most rows; 0 means all.",
    )
    return option(command)


@click.command(short_help="Lists commits, of everything or of a path.")
@click.argument("path", default="/")
@click.option("--fork", metavar="NAME", help="The log of this fork instead of HEAD's.")
@_rows_option
@source_options
@json_option
def log(*, path: str, fork: str | None, limit: int, source: Source, as_json: bool) -> None:
    """Lists the commits that changed what is at or below PATH, newest first: + added, ~ modified, - deleted.

    A fork's log goes on with the commits of HEAD that it began from.
    """
    where = _path(path)
    asked = LogQuery(path=format_path(where), fork=fork)
    with _opened(source) as service:
        rows, has_more, damaged = _collect(
            lambda **page: service.call(list_commits, msgspec.structs.replace(asked, **page)), limit
        )
        rows = rows if as_json else _with_names(service, rows)
    if as_json:
        print_json({"commits": rows, "has_more": has_more, **damaged})
    else:
        print_table(
            [_log_line(row) for row in rows], ("VERSION", "COMMIT", "TIME", "USER", "CHANGES", "MESSAGE")
        )
        _say_more(has_more, len(rows))
    _refuse_gaps(damaged)


@click.command(short_help="Shows one commit and what it changed.")
@click.argument("version")
@source_options
@json_option
def show(*, version: str, source: Source, as_json: bool) -> None:
    """Shows the commit VERSION: its number, or whatever names the version that it made."""
    with _opened(source) as service:
        first = service.call(show_commit, version, PageQuery())
        about = _about(first)
        changes = map(msgspec.to_builtins, _changes(service, first))
        damaged = {"damaged_commits": [about["sequence"]]} if about.get("damaged") else {}
        if as_json:
            print_json({**about, "totals": about["changes"], "changes": list(changes)})
            _refuse_gaps(damaged)
            return
        [about] = _with_names(service, [about])
        click.echo(f"version  {_printable(about['version'])}")
        click.echo(f"parent   {_printable(about['parent'])}")
        click.echo(f"commit   {about['sequence']}, {time_text(about['timestamp'])}")
        click.echo(f"user     {_who(about, ', ')}")
        if about["message"] or about.get("damaged"):
            click.echo(f"message  {_message(about)}")
        if about.get("collected"):
            click.echo("changes  not known any more: its versions were collected")
            return
        click.echo(f"changes  {_counts(about['changes'])}\n")
        for change in changes:
            click.echo(f"{_MARKS[change['change_type']]}  {_changed_path(change)}")
    _refuse_gaps(damaged)


@click.command(short_help="Shows what became of a file or directory.")
@click.argument("path")
@click.option("--commits", is_flag=True, help="Over every commit that touched it, not over the snapshots.")
@_rows_option
@source_options
@json_option
def history(*, path: str, commits: bool, limit: int, source: Source, as_json: bool) -> None:
    """Shows how PATH was added, modified and deleted from snapshot to snapshot, newest first."""
    where = _path(path)
    with _opened(source) as service:
        rows, has_more, damaged = _collect(
            lambda **page: service.call(show_history, where, HistoryQuery(commits=commits, **page)), limit
        )
        rows = rows if as_json else _with_names(service, rows)
    if as_json:
        print_json({"path": format_path(where), "history": rows, "has_more": has_more, **damaged})
    else:
        print_table([_history_line(row) for row in rows], _HISTORY_HEADERS)
        _say_more(has_more, len(rows))
    _refuse_gaps(damaged)


@click.command(short_help="Shows which commit each line comes from.")
@click.argument("path")
@click.option("--at", "version", default="HEAD", metavar="VERSION", help="At this version of HEAD.")
@source_options
@json_option
def blame(*, path: str, version: str, source: Source, as_json: bool) -> None:
    """Shows which commit each line of the file PATH comes from, through moves and copies.

    Of a directory, and of a file that is no text, it shows the last commit of each entry. Behind ^ stands one
    whose version was collected: it brought the line, or an older one did. Behind ? stands one whose record is
    damaged.
    """
    where = _path(path)
    with _opened(source) as service:
        found = _blame(service, source, where, version)
        for rows in ("entries", "lines"):
            if rows in found and not as_json:
                found[rows] = _with_names(service, found[rows])
    if as_json:
        print_json(found)
    elif "entries" in found:
        _show_entries(found["entries"])
    else:
        _show_lines(found["lines"])
    _refuse_gaps(found)


def _path(text: str) -> Path:
    path = parse_path(text)
    if is_system_path(path):
        raise NotFound("There is nothing at this path.", path=format_path(path))
    return path


@contextmanager
def _opened(source: Source) -> Iterator[Service]:
    """Opens a history; nothing of a file is collected while the context lasts."""
    with source.open_service("history", read_only=True) as service:
        if source.is_remote:
            yield service
            return
        with service.database.hold():  # type: ignore[attr-defined] # of a file
            yield service


def _with_names(service: Service, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the names of their users beside the ids, for people."""
    names = UserNames(service)
    named = []
    for row in rows:
        user = {} if row.get("user") is None else {"user": names.shown(row["user"])}
        users = {"users": list(map(names.shown, row["users"]))} if row.get("users") else {}
        named.append({**row, **user, **users})
    return named


def _about(commit: CommitDetails) -> dict[str, Any]:
    """A commit with its counts in ``changes``."""
    about: dict[str, Any] = msgspec.to_builtins(commit)
    about["changes"] = about.pop("totals")
    for member in ("has_more", "next_cursor", "truncated"):
        about.pop(member, None)
    return about


def _changes(service: Service, first: CommitDetails) -> Iterator[PathChange]:
    yield from first.changes
    if first.next_cursor is not None:
        yield from service.items(show_commit, str(first.sequence), PageQuery(after=first.next_cursor))


def _blame(service: Any, source: Source, path: Path, version: str) -> dict[str, Any]:
    if not source.is_remote:
        from svc_history.blame_of_file import blame_of_file

        return blame_of_file(service.database, path, version)
    with service.stream(compare_versions, CompareQuery(source=version, to=version)) as response:
        root = response.json(_Compared).source
    asked = BlameQuery(version=root)
    page = service.call(blame_path, path, asked)
    damaged = set(page.damaged_commits or ())
    about: dict[str, Any] = {"path": page.path, "version": page.version}
    if page.lines is not UNSET:
        about |= {"lines": msgspec.to_builtins(page.lines), "truncated": page.truncated}
    else:
        about["entries"] = msgspec.to_builtins(page.items)
        while page.next_cursor is not None:
            page = service.call(blame_path, path, msgspec.structs.replace(asked, after=page.next_cursor))
            about["entries"] += msgspec.to_builtins(page.items)
            damaged.update(page.damaged_commits or ())
    return {**about, "damaged_commits": sorted(damaged)} if damaged else about


class _Compared(msgspec.Struct, rename={"source": "from"}):
    source: str


def _collect(
    page_of: Callable[..., Page[Any]], limit: int
) -> tuple[list[dict[str, Any]], bool, dict[str, Any]]:
    """The rows of as many pages as a limit asks for, whether there are more, and the ``damaged_commits``."""
    rows: list[dict[str, Any]] = []
    damaged: set[int] = set()
    after: str | None = None
    while True:
        page: Any = page_of(limit=_PAGE if limit == 0 else min(_PAGE, limit - len(rows)), after=after)
        rows += msgspec.to_builtins(page.items)
        damaged.update(page.damaged_commits or ())
        after = page.next_cursor
        if after is None or (limit and len(rows) >= limit):
            return rows, after is not None, {"damaged_commits": sorted(damaged)} if damaged else {}


def _refuse_gaps(answer: dict[str, Any]) -> None:
    """Ends a command whose answer has gaps as one that met damage; what can be read is printed."""
    numbers: list[int] = answer.get("damaged_commits", [])
    if numbers:
        shown = ", ".join(map(str, numbers[:_MOST_NAMED]))
        rest = f" and {len(numbers) - _MOST_NAMED} more" if len(numbers) > _MOST_NAMED else ""
        raise CorruptRecord(
            f"Not all can be shown: the records of these commits are damaged: {shown}{rest}. Who made them, "
            "when and what for is not known. 'svc verify --repair' repairs what can be repaired."
        )


def _say_more(has_more: bool, shown: int) -> None:
    if has_more:
        click.echo(f"svc: the newest {shown} are shown; -n 0 shows all.", err=True)


def _show_lines(lines: list[dict[str, Any]]) -> None:
    width = len(str(len(lines)))
    for line in lines:
        place = f"  {_printable(line['path'])}" if "path" in line else ""
        click.echo(
            f"{_version(line)}  {_who(line, ','):<12}  {time_text(line['timestamp'])}{place}  "
            f"{line['line']:>{width}}  {_printable(line['text'], keep_tabs=True)}"
        )


def _show_entries(rows: list[dict[str, Any]]) -> None:
    print_table(
        [(_version(row), _who(row, ","), _time(row), _entry_name(row)) for row in rows],
        ("VERSION", "USER", "TIME", "NAME"),
    )


def _version(row: dict[str, Any]) -> str:
    """The beginning of a version, behind ``^`` or ``?`` as the help of ``blame`` explains."""
    version: str = row["version"] or "-"
    mark = "?" if row.get("damaged") else "^" if row.get("collected") else ""
    return _printable((mark + version)[:_HASH])


def _time(row: dict[str, Any]) -> str:
    return "-" if row["timestamp"] is None else time_text(row["timestamp"])


def _message(row: dict[str, Any]) -> str:
    return _DAMAGED if row.get("damaged") else _printable(row["message"])


def _log_line(row: dict[str, Any]) -> tuple[str, ...]:
    message = _message(row | {"message": (row["message"] or "").partition("\n")[0]})
    return (
        (row["version"] or "-")[:_HASH],
        str(row["sequence"]),
        time_text(row["timestamp"]),
        _who(row, ","),
        "collected" if row.get("collected") else _counts(row["changes"]),
        message,
    )


def _history_line(row: dict[str, Any]) -> tuple[str, ...]:
    size = "-" if row["size"] is None else str(row["size"])
    if "changes" in row:
        size = _counts(row["changes"])
    if row.get("collected"):
        size = "collected"
    name = row["snapshot"]
    return (
        row["version"][:_HASH],
        time_text(row["timestamp"]),
        _who(row, ",") if "user" in row else "-",
        row["change_type"] or "-",
        size if row["change_type"] != "deleted" else "",
        _printable(name if name is not None else (row["message"] or "").partition("\n")[0]),
    )


def _counts(counts: dict[str, int] | None) -> str:
    if counts is None:
        return "many"
    return f"+{counts['added']} ~{counts['modified']} -{counts['deleted']}"


def _changed_path(change: dict[str, Any]) -> str:
    slash = "/" if change["entry_type"] == EntryKind.DIRECTORY else ""
    return _printable(change["path"]) + slash


def _entry_name(row: dict[str, Any]) -> str:
    return _printable(row["name"]) + ("/" if row["entry_type"] == EntryKind.DIRECTORY else "")


def _who(row: dict[str, Any], separator: str) -> str:
    """Who made something, and behind @ the nodes of a cluster on which that was."""
    users = row.get("users") or [row["user"]]
    nodes = [row["origin"]["node_id"]] if "origin" in row else row.get("nodes", [])
    where = f"@{separator.join(map(str, nodes))}" if nodes else ""
    return separator.join(map(_printable, users)) + where


def _printable(text: str | None, *, keep_tabs: bool = False) -> str:
    """A stored text as a terminal may show it; ``-`` for none."""
    if text is None:
        return "-"
    return terminal_text(text, keep_tabs=keep_tabs)
