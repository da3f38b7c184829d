"""``svc mirror``: a directory of a server that is kept on this machine, both ways, also offline."""

from __future__ import annotations

import time
from dataclasses import replace
from urllib.parse import unquote, urlsplit

import click

from svc.errors import ServiceUnavailable, SvcError, UsageError
from svc.plugin import format_path, parse_path
from svc_cli import Source, json_option, print_json, source_options, terminal_text
from svc_files.api import Incomplete
from svc_mirror.client.following import Follower
from svc_mirror.client.local_tree import LocalTree
from svc_mirror.client.report import Report
from svc_mirror.client.server import Server
from svc_mirror.client.state import State
from svc_mirror.client.working import Options, run_once
from svc_mirror.errors import ConflictsKept

__all__ = ["mirror"]

_LONGEST_WAIT_S = 60.0
_LEAST_REST_S = 0.2
_IDLE_SHARE = 9
"""A watching mirror rests at least so many times as long as its last run took."""


@click.command(short_help="Keeps a directory of a server here, both ways.")
@click.argument("directory", metavar="URL/DIR")
@click.argument("local", type=click.Path(file_okay=False))
@click.option("--once", "watches", flag_value=False, default=False, help="Run once; that is the default.")
@click.option("--watch", "watches", flag_value=True, help="Go on, and follow both sides.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="With --watch, how long to wait between two looks at least, unless the server tells of a change.",
)
@click.option("--down-only", is_flag=True, help="Send nothing: follow the server.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Delete also most of the files, if one side has lost them.")
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
@json_option
@source_options
def mirror(
    *,
    directory: str,
    local: str,
    watches: bool,
    interval: float,
    down_only: bool,
    dry_run: bool,
    yes: bool,
    quiet: bool,
    as_json: bool,
    source: Source,
) -> None:
    """Makes the directory LOCAL and a directory of a server alike, and remembers what both had.

    A file that was changed on both sides is kept twice: the server's under its name, the one of this machine
    beside it. URL/DIR is the URL of a server with a path of its database, or only such a path where -D names
    the server.
    """
    server_source, path = _server_of(directory, source)
    options = Options(down_only=down_only, dry_run=dry_run, may_delete_much=yes)
    tree = LocalTree(local)
    try:
        client = server_source.connect()
        try:
            server = Server(client, path)
            state = State(tree.state_location, {"server": server.url, "path": server.directory})
            try:
                if watches and not dry_run:
                    follower = Follower(client, server.directory)
                    try:
                        _watch(tree, state, server, options, interval, follower)
                    finally:
                        follower.close()
                else:
                    _run(tree, state, server, options, as_json=as_json, quiet=quiet)
            finally:
                state.close()
        finally:
            client.close()
    finally:
        tree.close()


def _server_of(directory: str, source: Source) -> tuple[Source, str]:
    """Returns the server and the path that the arguments name."""
    if "://" not in directory:
        if not source.is_remote:
            raise UsageError("Say which server: give a URL with the directory, or -D URL.")
        return source, directory
    parts = urlsplit(directory)
    server = f"{parts.scheme}://{parts.netloc}"
    return replace(source, database=server, named=True), format_path(parse_path(unquote(parts.path)))


def _run(
    tree: LocalTree, state: State, server: Server, options: Options, *, as_json: bool, quiet: bool
) -> None:
    report = Report(
        lambda line: click.echo(terminal_text(line), err=not options.dry_run) if not as_json else None
    )
    is_complete = False
    try:
        run_once(tree, state, server, options, report)
        is_complete = True
    finally:
        if as_json:
            print_json(report.as_json())
        elif not quiet and (is_complete or report.done):
            for line in report.lines():
                click.echo(terminal_text(line), err=True)
    if report.conflicts:
        raise ConflictsKept(f"{len(report.conflicts)} changed on both sides; each was kept twice.")
    if report.left:
        raise Incomplete(f"{len(report.left)} could not be mirrored.")


def _watch(
    tree: LocalTree, state: State, server: Server, options: Options, interval: float, follower: Follower
) -> None:
    """Runs again and again. It is offline often: that is said once, and tried again ever later.

    While the server tells when it changes, it is asked then, and after what was written.
    """
    failure: str | None = None
    said: list[str] = []
    failures = 0
    is_known = False
    while True:
        began = time.monotonic()
        asks = follower.must_ask() or not is_known
        is_known = False
        report = Report(lambda line: click.echo(terminal_text(line), err=True))
        try:
            run_once(tree, state, server, options, report, asks=asks)
        except ServiceUnavailable as error:
            failures += 1
            if error.message != failure:
                click.echo(f"svc: {terminal_text(error.message)} Trying again.", err=True)
            failure = error.message
        except SvcError:
            raise
        else:
            failures, failure = 0, None
            is_known = report.is_quiet
            lines = report.lines()
            if lines not in (said, ["nothing to do"]):
                for line in lines:
                    click.echo(terminal_text(line), err=True)
            said = lines
        took = time.monotonic() - began
        rest = max(interval, took * _IDLE_SHARE)
        if failures:
            time.sleep(max(rest, min(_LONGEST_WAIT_S, interval * 2 ** min(failures, 10))))
            continue
        # Many events come together; and who is told all the time rests as long as it works.
        least = min(rest, max(_LEAST_REST_S, took))
        time.sleep(least)
        follower.wait(rest - least)
