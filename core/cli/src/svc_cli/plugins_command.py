"""``svc plugins``: what is installed, allowed and enabled, what is wrong with it, and settings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path as FilePath
from typing import Any

import click
import msgspec
from msgspec import UNSET

from svc.errors import PluginMissing, UsageError
from svc.findings import merge_findings
from svc.operations.system import (
    change_settings,
    disable_plugin,
    enable_plugin,
    list_findings,
    list_plugins,
    reports_of,
)
from svc.operations.system_models import PluginInfo, PluginSettings, SettingsChange
from svc.plugins import (
    describe_plugins,
    parse_assignments,
    plugin_findings,
)
from svc.plugins.descriptor import PluginDescriptor
from svc.plugins.enabled import later_defaults
from svc_cli.command_check import command_findings
from svc_cli.lazy_command import LazyCommand
from svc_cli.opening import boot_for_diagnosis, boot_plugins
from svc_cli.options import json_option
from svc_cli.output import counted, finding_lines, terminal_text
from svc_cli.source import Source, source_options

__all__ = ["plugins"]

PROBLEM_EXIT_CODE = 10
MAXIMUM_SETTING_BYTES = 1024 * 1024


@click.group()
def plugins() -> None:
    """Shows plugins, and says which of them a database uses.

    A plugin is installed (pip), allowed (--plugins, SVC_PLUGINS) and enabled (a record in the database).
    """


@plugins.command("list")
@source_options
@json_option
def list_command(source: Source, as_json: bool) -> None:
    """Lists every plugin that is installed, allowed or enabled."""
    reports = _reports(source)
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
@source_options
@json_option
def info_command(plugin_id: str, source: Source, as_json: bool) -> None:
    """Shows one plugin: what it adds, its settings, its problem."""
    report = next((item for item in _reports(source) if item.id == plugin_id), None)
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
    lines += [("drives", ", ".join(report.drives))] if report.drives else []
    lines += [("rests", ", ".join(report.rests))] if report.rests else []
    lines += [(f"setting {name}", _json_text(value)) for name, value in (report.configuration or {}).items()]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        click.echo(terminal_text(f"{name:<{width}}  {value}"))


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
@source_options
@json_option
def enable_command(
    plugin_id: str,
    assignments: Sequence[str],
    files: Sequence[str],
    source: Source,
    as_json: bool,
) -> None:
    """Enables a plugin in a database."""
    loaded = boot_plugins()
    has_settings = bool(assignments or files)
    # A server may have plugins that this machine has not.
    descriptor = loaded.require(plugin_id) if has_settings or not source.is_remote else None
    settings = {} if descriptor is None else _settings(descriptor, assignments, files)
    report = source.call(enable_plugin, plugin_id, PluginSettings(settings))
    if as_json:
        _print_json(report)
        return
    click.echo(f"Enabled {plugin_id} in {source.shown}.")
    if descriptor is not None and not descriptor.reload:
        click.echo("A server that is running uses it from its next start on.")


@plugins.command("disable")
@click.argument("plugin_id", metavar="ID")
@source_options
@json_option
def disable_command(plugin_id: str, source: Source, as_json: bool) -> None:
    """Disables a plugin in a database; its settings there are forgotten."""
    warning = source.call(disable_plugin, plugin_id).warning
    if warning is not UNSET:
        click.echo(f"svc: {terminal_text(warning)}", err=True)
    if as_json:
        _print_json({"id": plugin_id, "enabled": False})
    else:
        click.echo(f"Disabled {plugin_id} in {source.database}.")


@plugins.command("config")
@click.argument("plugin_id", metavar="ID")
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Change a setting; may be repeated."
)
@click.option(
    "--set-from", "files", multiple=True, metavar="KEY=FILE", help="Change a setting to a file's content."
)
@click.option("--unset", "unset", multiple=True, metavar="KEY", help="Go back to a setting's default.")
@source_options
@json_option
def config_command(
    plugin_id: str,
    assignments: Sequence[str],
    files: Sequence[str],
    unset: Sequence[str],
    source: Source,
    as_json: bool,
) -> None:
    """Shows the settings of an enabled plugin, secrets hidden, or changes them."""
    if assignments or files or unset:
        has_values = bool(assignments or files)
        # What a text means, the plugin's struct says.
        settings = _settings(boot_plugins().require(plugin_id), assignments, files) if has_values else {}
        report = source.call(change_settings, plugin_id, SettingsChange(settings, list(unset)))
        _show_settings([report], plugin_id, as_json)
    else:
        _show_settings(_reports(source), plugin_id, as_json)


def _show_settings(reports: Iterable[PluginInfo], plugin_id: str, as_json: bool) -> None:
    report = next((item for item in reports if item.id == plugin_id), None)
    if report is None or not report.enabled:
        raise PluginMissing(f"The plugin {plugin_id!r} is not enabled in this database.", plugin=plugin_id)
    if as_json:
        _print_json(report.configuration or {})
        return
    for name, value in (report.configuration or {}).items():
        click.echo(terminal_text(f"{name} = {_json_text(value)}"))
    if report.problem:
        click.echo(terminal_text(f"problem: {report.problem}"))


plugins.add_command(
    LazyCommand("new", "svc_cli.plugin_template:new_command", "Makes the sources of a plugin to begin with.")
)


@plugins.command("doctor")
@source_options
@json_option
@click.pass_context
def doctor_command(context: click.Context, source: Source, as_json: bool) -> None:
    """Looks for everything that is wrong with plugins and database; exits 0 when all is well, else 10.

    While a server runs, its processes say what they find; 'svc status' and GET /system/health say the same.
    """
    later: tuple[str, ...] = ()
    if source.is_remote:
        with closing(source.connect()) as client:
            found = tuple(client.call(list_findings).findings)
            reports = client.call(list_plugins).plugins
            count = sum(report.installed and report.allowed for report in reports)
    elif _exists(source):
        from svc_cli.diagnosis import gather_findings
        from svc_cli.processes.registration import registered_processes

        with source.open_file(read_only=True) as opened:
            loaded, hanging = boot_for_diagnosis(opened)
            count = 0 if loaded is None else len(loaded.descriptors)
            processes = registered_processes(opened.state_directory)
            found = gather_findings(opened, loaded, processes, hanging)
            later = () if loaded is None else later_defaults(opened, loaded)
    else:
        loaded, found = boot_for_diagnosis()
        count = 0 if loaded is None else len(loaded.descriptors)
        if loaded is not None:
            found = merge_findings(plugin_findings(loaded), command_findings(loaded))
    if as_json:
        _print_json(found)
    elif not found:
        click.echo(f"All is well with {counted(count, 'plugin')}.")
    else:
        for line in finding_lines(found):
            click.echo(line)
    if later and not as_json:
        click.echo(
            f"Since this database was made, the default set has gained: {', '.join(later)}. "
            "'svc plugins enable ID' enables one."
        )
    if found:
        context.exit(PROBLEM_EXIT_CODE)


def _reports(source: Source) -> list[PluginInfo]:
    if source.is_remote or _exists(source):
        return source.call(list_plugins).plugins
    return reports_of(describe_plugins(boot_plugins()))


def _exists(source: Source) -> bool:
    """Whether there is a database to read: a named one must exist, the default one may be missing."""
    return source.named or FilePath(source.database).exists()


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


def _mark(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _print_table(
    heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], last_head: str, last: Sequence[str]
) -> None:
    """Prints columns as wide as their widest cell; the last one, with sentences, has no width."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for cells, text in zip((heads, *rows), (last_head, *last), strict=True):
        padded = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        click.echo(terminal_text(f"{padded}  {text}").rstrip())
