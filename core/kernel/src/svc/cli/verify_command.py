"""``svc verify``."""

from __future__ import annotations

from dataclasses import asdict

import click

from svc.cli.opening import open_database
from svc.cli.options import database_option, json_option
from svc.cli.output import print_json
from svc.errors import VerificationFailed

__all__ = ["verify"]


@click.command()
@database_option
@json_option
def verify(database: str, as_json: bool) -> None:
    """Checks every byte of a database: records, hashes, every path of every version.

    Exits 0 only when all is well; else it names every damaged path and exits 7.
    """
    from svc.cli.progress import progress_bar
    from svc.database import verify as verify_database

    with open_database(database, read_only=True) as opened, progress_bar("Verifying") as progress:
        report = verify_database(opened, lambda _phase, done, total: progress(done, total))
    if as_json:
        print_json({"ok": report.ok, **asdict(report)})
    else:
        counts = {name: getattr(report, name) for name in ("records", "objects", "commits", "files")}
        click.echo(", ".join(f"{count} {name}" for name, count in counts.items()))
        if report.unnamed:
            click.echo(f"{report.unnamed} of the records belong to no commit yet, or to none any more.")
        for damage in report.damaged:
            click.echo(" ".join(filter(None, (damage.path, damage.message, _place(damage.offset)))))
        if report.ok:
            click.echo("All is well.")
    if not report.ok:
        number = len(report.damaged)
        things = "1 thing is" if number == 1 else f"{number} things are"
        raise VerificationFailed(f"{things} damaged in {database}.")


def _place(offset: int | None) -> str:
    return "" if offset is None else f"(at byte {offset} of the log)"
