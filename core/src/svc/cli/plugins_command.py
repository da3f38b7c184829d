"""``svc plugins``: what is installed, allowed and enabled, and what is wrong with it.

It shows settings with their secrets hidden, and changes which plugins a database uses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from svc.cli.opening import boot_plugins, open_database
from svc.cli.options import database_option, json_option
from svc.errors import PluginMissing, UsageError
from svc.plugins import (
    PluginProblem,
    PluginReport,
    Plugins,
    configure,
    describe_plugins,
    diagnose,
    disable,
    enable,
    parse_assignments,
)
from svc.plugins.configuration import merge_settings, without_settings
from svc.plugins.descriptor import PluginDescriptor
from svc.plugins.enabling import stored_settings

if TYPE_CHECKING:
    from svc.database import Database

__all__ = ["plugins"]

PROBLEM_EXIT_CODE = 10
MAXIMUM_SETTING_BYTES = 1024 * 1024


@click.group()
def plugins() -> None:
    """Shows plugins, and says which of them a database uses.

    A plugin is installed (pip), allowed (--plugins, SVC_PLUGINS) and enabled (a record in the database).
    """


@plugins.command("list")
@database_option
@json_option
@click.pass_context
def list_command(context: click.Context, database: str, as_json: bool) -> None:
    """Lists every plugin that is installed, allowed or enabled."""
    reports = _reports(context, boot_plugins(), database)
    if as_json:
        _print_json(reports)
        return
    rows = [
        (report.id, report.version, _mark(report.installed), _mark(report.allowed), _mark(report.enabled))
        for report in reports
    ]
    texts = [report.problem or report.summary for report in reports]
    _print_table(("ID", "VERSION", "INSTALLED", "ALLOWED", "ENABLED"), rows, "SUMMARY OR PROBLEM", texts)


@plugins.command("info")
@click.argument("plugin_id", metavar="ID")
@database_option
@json_option
@click.pass_context
def info_command(context: click.Context, plugin_id: str, database: str, as_json: bool) -> None:
    """Shows one plugin: what it adds, its settings, its problem."""
    report = next(
        (item for item in _reports(context, boot_plugins(), database) if item.id == plugin_id), None
    )
    if report is None:
        raise PluginMissing(f"The plugin {plugin_id!r} is not installed.", plugin=plugin_id)
    if as_json:
        _print_json(report)
        return
    lines = [
        ("id", report.id),
        ("version", report.version),
        ("summary", report.summary),
        ("distribution", report.distribution or "-"),
        ("installed", _mark(report.installed)),
        ("allowed", _mark(report.allowed)),
        ("enabled", _mark(report.enabled)),
    ]
    if report.problem:
        lines.append(("problem", report.problem))
    lines += [(f"adds {family.replace('_', ' ')}", ", ".join(names)) for family, names in report.adds.items()]
    lines += [(f"setting {name}", _json_text(value)) for name, value in (report.configuration or {}).items()]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        click.echo(f"{name:<{width}}  {value}")


@plugins.command("enable")
@click.argument("plugin_id", metavar="ID")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A setting; may be repeated.")
@click.option(
    "--set-from",
    "files",
    multiple=True,
    metavar="KEY=FILE",
    help="A setting whose value is a file's content ('-': standard input), for secrets.",
)
@database_option
@json_option
def enable_command(
    plugin_id: str,
    assignments: Sequence[str],
    files: Sequence[str],
    database: str,
    as_json: bool,
) -> None:
    """Enables a plugin in a database."""
    loaded = boot_plugins()
    settings = _settings(loaded.require(plugin_id), assignments, files)
    with open_database(database) as opened:
        enable(opened, loaded, plugin_id, settings)
        _confirm(loaded, opened, plugin_id, f"Enabled {plugin_id}", as_json)


@plugins.command("disable")
@click.argument("plugin_id", metavar="ID")
@database_option
@json_option
def disable_command(plugin_id: str, database: str, as_json: bool) -> None:
    """Disables a plugin in a database; its settings there are forgotten."""
    loaded = boot_plugins()
    with open_database(database) as opened:
        disable(opened, loaded, plugin_id)
        if as_json:
            _print_json({"id": plugin_id, "enabled": False})
        else:
            click.echo(f"Disabled {plugin_id} in {database}.")


@plugins.command("config")
@click.argument("plugin_id", metavar="ID")
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Change a setting; may be repeated."
)
@click.option(
    "--set-from", "files", multiple=True, metavar="KEY=FILE", help="Change a setting to a file's content."
)
@click.option("--unset", "unset", multiple=True, metavar="KEY", help="Go back to a setting's default.")
@database_option
@json_option
def config_command(
    plugin_id: str,
    assignments: Sequence[str],
    files: Sequence[str],
    unset: Sequence[str],
    database: str,
    as_json: bool,
) -> None:
    """Shows the settings of an enabled plugin, secrets hidden, or changes them."""
    loaded = boot_plugins()
    changing = bool(assignments or files or unset)
    with open_database(database, read_only=not changing) as opened:
        if changing:
            descriptor = loaded.require(plugin_id)
            base = without_settings(stored_settings(opened, plugin_id), unset)
            changed = merge_settings(base, _settings(descriptor, assignments, files))
            configure(opened, loaded, plugin_id, changed)
        else:
            stored_settings(opened, plugin_id)
        report = next(item for item in describe_plugins(loaded, opened) if item.id == plugin_id)
    if as_json:
        _print_json(report.configuration or {})
        return
    for name, value in (report.configuration or {}).items():
        click.echo(f"{name} = {_json_text(value)}")
    if report.problem:
        click.echo(f"problem: {report.problem}")


@plugins.command("doctor")
@database_option
@json_option
@click.pass_context
def doctor_command(context: click.Context, database: str, as_json: bool) -> None:
    """Looks for everything that is wrong with plugins; exits 0 when all is well, else 10."""
    loaded = boot_plugins()
    if _exists(context, database):
        with open_database(database, read_only=True) as opened:
            found = diagnose(loaded, opened)
    else:
        found = diagnose(loaded)
    if as_json:
        _print_json([_problem_members(problem) for problem in found])
    elif not found:
        click.echo(f"All is well with {len(loaded.descriptors)} plugins.")
    else:
        for problem in found:
            click.echo(f"{problem.plugin_id}: {problem.kind.value}: {problem.message}")
    if found:
        context.exit(PROBLEM_EXIT_CODE)


def _reports(context: click.Context, loaded: Plugins, database: str) -> list[PluginReport]:
    if not _exists(context, database):
        return describe_plugins(loaded)
    with open_database(database, read_only=True) as opened:
        return describe_plugins(loaded, opened)


def _exists(context: click.Context, database: str) -> bool:
    """Whether to look into a database: one that is named must be there, the default one may be missing."""
    is_named = context.get_parameter_source("database") is not ParameterSource.DEFAULT
    return is_named or FilePath(database).exists()


def _settings(
    descriptor: PluginDescriptor, assignments: Iterable[str], files: Iterable[str]
) -> dict[str, Any]:
    pairs = [_pair(text, "--set") for text in assignments]
    for text in files:
        name, source = _pair(text, "--set-from")
        pairs.append((name, _content(source)))
    return parse_assignments(descriptor, pairs)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        # The text is not repeated: what stands there may be a secret whose key was forgotten.
        raise UsageError(f"{option} takes KEY=VALUE.", field=option.lstrip("-"))
    return name, value


def _content(source: str) -> str:
    try:
        if source == "-":
            data = sys.stdin.buffer.read(MAXIMUM_SETTING_BYTES + 1)
        else:
            with open(source, "rb") as stream:
                data = stream.read(MAXIMUM_SETTING_BYTES + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The file {source!r} cannot be read as text: {error}.", field="set-from") from error
    if len(data) > MAXIMUM_SETTING_BYTES:
        raise UsageError(f"The file {source!r} is too large for a setting.", field="set-from")
    return text.removesuffix("\n").removesuffix("\r")


def _confirm(loaded: Plugins, database: Database, plugin_id: str, text: str, as_json: bool) -> None:
    if as_json:
        _print_json(next(report for report in describe_plugins(loaded, database) if report.id == plugin_id))
        return
    click.echo(f"{text} in {database.path}.")
    if not loaded.descriptors[plugin_id].reload:
        click.echo("A server that is running uses it from its next start on.")


def _problem_members(problem: PluginProblem) -> dict[str, str]:
    return {"id": problem.plugin_id, "kind": problem.kind.value, "message": problem.message}


def _mark(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _print_table(
    heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], last_head: str, last: Sequence[str]
) -> None:
    """Prints columns as wide as their widest cell; the last one, of sentences, runs freely."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for cells, text in zip((heads, *rows), (last_head, *last), strict=True):
        padded = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        click.echo(f"{padded}  {text}".rstrip())
