"""``svc verify``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from svc.errors import UsageError, VerificationFailed
from svc_cli.opening import open_database
from svc_cli.options import database_option, json_option
from svc_cli.output import print_json

if TYPE_CHECKING:
    from svc_maintenance.repair import RepairReport
    from svc_maintenance.verification import Damage

__all__ = ["verify"]

_MOST_SHOWN = 100


@click.command()
@database_option
@click.option(
    "--repair", is_flag=True, help="Put right what is damaged. Nobody else may have the database open."
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="FILE|URL",
    help="With --repair: where whole copies may be: a backup, an export, or a server. Repeatable.",
)
@json_option
def verify(database: str, repair: bool, sources: tuple[str, ...], as_json: bool) -> None:
    """Checks every byte of a database: records, hashes, every path of every version.

    Exits 0 when nothing is damaged; else it names every damaged path, with the versions that have it, and
    exits 7. What an earlier repair could not save is named too, and counts as long as HEAD or a named version
    needs it.

    With --repair it puts right what is damaged, from anywhere, and exits 0 when everything is there again;
    what can't be saved is put out of the way and named, with exit code 7. All bytes that it overwrites are
    saved beside the database first.
    """
    if sources and not repair:
        raise UsageError("--from is for --repair.")
    if repair:
        _repair(database, sources, as_json)
    else:
        _verify(database, as_json)


def _verify(database: str, as_json: bool) -> None:
    from svc_cli.progress import progress_bar
    from svc_maintenance.verification import verify as verify_database

    with open_database(database, read_only=True) as opened, progress_bar("Verifying") as progress:
        report = verify_database(opened, lambda _phase, done, total: progress(done, total))
    if as_json:
        print_json({"ok": report.ok, **to_builtins(report), "needed": len(report.needed)})
    else:
        counts = {name: getattr(report, name) for name in ("records", "objects", "commits", "files")}
        click.echo(", ".join(f"{count} {name}" for name, count in counts.items()))
        if report.unnamed:
            click.echo(f"{report.unnamed} of the records belong to no commit yet, or to none any more.")
        _show(report.damaged, is_complete=report.is_complete)
        _show(report.lost, "Lost before: ", is_complete=report.is_complete)
        if report.ok:
            click.echo(
                "Nothing is damaged; no version of today needs what was lost."
                if report.lost
                else "All is well."
            )
    if report.damaged:
        raise VerificationFailed(f"{_things(report.damaged)} damaged in {database}.")
    if report.needed:
        raise VerificationFailed(
            f"{_things(report.needed)} lost in {database}, and HEAD or a named version needs that: store it "
            "again or delete it."
        )


def _repair(database: str, sources: Sequence[str], as_json: bool) -> None:
    from contextlib import ExitStack

    from svc.log import scheme_of
    from svc_cli.progress import progress_bar
    from svc_cli.source import is_server_url
    from svc_maintenance.commands.repair_sources import open_source
    from svc_maintenance.repair import repair as repair_database

    if is_server_url(database) or (scheme_of(database) or "file") != "file":
        raise UsageError("--repair takes a database in a file.", field="database")
    with ExitStack() as stack:
        opened = []
        for source in sources:
            opened.append(open_source(source))
            stack.callback(opened[-1].close)
        progress = stack.enter_context(progress_bar("Repairing"))
        report = repair_database(
            database.removeprefix("file://"),
            opened,
            progress=lambda _phase, done, total: progress(done, total),
        )
    if as_json:
        print_json({"ok": report.ok, "changed": report.changed, **to_builtins(report)})
    else:
        _show_repair(report)
    if not report.ok:
        raise VerificationFailed(f"Not everything could be saved in {database}.")


def _show_repair(report: RepairReport) -> None:
    click.echo(
        f"{report.restored_records} records restored as they were, {report.fetched_objects} objects fetched, "
        f"{report.voided_records} damaged records put out of the way, {report.cleaned} other places put "
        "right."
    )
    if report.saved_to:
        click.echo(f"What was overwritten or cut is saved beside the database: {', '.join(report.saved_to)}.")
    if report.state_saved_to is not None:
        click.echo(f"The directory beside it was moved to {report.state_saved_to}.")
    for sentence in (*report.extended_from, *report.given_up_commits, *report.replaced_roots):
        click.echo(sentence)
    for path in report.given_up_directories:
        click.echo(
            f"The directory {path} of the system tree was lost and is given up, with what plugins kept "
            "there, such as settings or rights. Look who may do what."
        )
    if report.lost_commits:
        numbers = ", ".join(str(number) for number in report.lost_commits[:_MOST_SHOWN])
        click.echo(f"Of these commits the records are lost (who, when, what for): {numbers}.")
    _show(report.lost, "Lost: ", is_complete=report.is_complete)
    _show(report.damaged, "Still damaged: ", is_complete=report.is_complete)
    if report.ok:
        click.echo("Everything is there." if report.changed else "Nothing was damaged.")


def _things(damages: Sequence[Damage]) -> str:
    return "1 thing is" if len(damages) == 1 else f"{len(damages)} things are"


def _show(damages: Sequence[Damage], prefix: str = "", *, is_complete: bool = True) -> None:
    from svc_maintenance.verification.report import shown_versions

    for damage in damages[:_MOST_SHOWN]:
        versions = shown_versions(damage.held)
        place = "" if damage.offset is None else f"(at byte {damage.offset} of the log)"
        held = f"In {versions}." if versions else ""
        click.echo(prefix + " ".join(filter(None, (damage.path, damage.message, place, held))))
    rest = len(damages) - _MOST_SHOWN
    if rest > 0:
        more = "" if is_complete else " at least"
        click.echo(f"{prefix}and{more} {rest} more; --json gives them.")
