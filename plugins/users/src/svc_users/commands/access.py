"""``svc access``: what a user may do to a path, rule by rule."""

from __future__ import annotations

import click

from svc.plugin import parse_path
from svc_cli import Source, json_option, print_json, print_table, source_options, terminal_text
from svc_users.models import AccessLevel, AccessQuery
from svc_users.operations import explain_access

__all__ = ["access"]


@click.command(short_help="Explains what a user may do to a path.")
@click.argument("path")
@click.option("--as", "user", metavar="USER", required=True, help="The user, by name or id.")
@source_options
@json_option
def access(*, path: str, user: str, source: Source, as_json: bool) -> None:
    """Explains what a user may do to PATH: for each operation which level, group and grant decide.

    Links are not followed, and the rules of a key, which narrow what its user may do, are not asked.
    """
    parse_path(path)
    found = source.call(explain_access, AccessQuery(path, user))
    if as_json:
        print_json(found)
        return
    click.echo(terminal_text(f"{found.username} at {found.path}: {found.permissions}"))
    if found.groups:
        groups = ", ".join(f"{group.group} ({group.by})" for group in found.groups)
        click.echo(f"groups: {terminal_text(groups)}")
    _print_levels(found.levels)
    click.echo()
    print_table(
        [
            (decision.operation, "yes" if decision.allowed else "no", terminal_text(decision.reason))
            for decision in found.decisions
        ],
        ("OPERATION", "ALLOWED", "WHY"),
    )


def _print_levels(levels: list[AccessLevel]) -> None:
    for level in levels:
        click.echo(f"{terminal_text(level.path)}")
        for grant in level.grants:
            pattern = "" if grant.path_pattern is None else f" for {grant.path_pattern}"
            left_out = "" if grant.applies else ", which leaves this path out"
            click.echo(
                terminal_text(
                    f"  {grant.grant_id}  allow {grant.allow}  deny {grant.deny}  "
                    f"to {grant.group}{pattern}{left_out}"
                )
            )
