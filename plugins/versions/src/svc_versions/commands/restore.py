"""``svc restore``: a file, link or directory back to what it was."""

from __future__ import annotations

import click
import msgspec

from svc.errors import NotFound
from svc.plugin import format_path, is_system_path, parse_path
from svc_cli import (
    Service,
    Source,
    counted,
    json_option,
    print_json,
    print_result,
    source_options,
    terminal_text,
)
from svc_versions.models import PathRestoreBody, ResolveQuery
from svc_versions.operations import resolve_version, restore_path, show_snapshot

__all__ = ["restore"]


@click.command(short_help="Puts a file or directory back as it was.")
@click.argument("path")
@click.option(
    "--at",
    "--from",
    "version",
    metavar="VERSION",
    help="A snapshot's name, a root hash, forks/NAME, or a time such as 2026-03-01T12:00:00Z. Without it, "
    "what was deleted comes back.",
)
@source_options
@json_option
def restore(*, path: str, version: str | None, source: Source, as_json: bool) -> None:
    """Puts the file, link or directory at PATH back as VERSION has it; without one, as it was when deleted.

    With a VERSION, HEAD as it is before stays in a snapshot, whose name is printed, and a directory becomes
    exactly what it was. Without one nothing is replaced: what stands there now is a conflict.
    """
    wanted = parse_path(path)
    if version is None:
        _restore_deleted(source, format_path(wanted), as_json)
        return
    if is_system_path(wanted):
        raise NotFound("The version has nothing at this path.", path=format_path(wanted))
    with source.open_service("versions") as service:
        done = service.call(restore_path, wanted, _origin(service, version))
    if as_json:
        answer = msgspec.to_builtins(done)
        del answer["from_snapshot"]
        print_json(
            {"restored": answer.pop("restored"), "path": answer.pop("path"), "from": version, **answer}
        )
    else:
        text = f"restored {done.path} from {version}; HEAD before it is snapshot {done.auto_snapshot}"
        click.echo(terminal_text(text))


def _restore_deleted(source: Source, path: str, as_json: bool) -> None:
    """Brings back what was deleted, by the operation of the plugin that keeps it."""
    done = source.ask("POST", "/files/restore", {"path": path})
    print_result(done, f"restored {path}, {counted(done['files'], 'file')}", as_json=as_json)


def _origin(service: Service, version: str) -> PathRestoreBody:
    """What names a version: a snapshot first, or whatever else does."""
    try:
        return PathRestoreBody(snapshot=service.call(show_snapshot, version).name)
    except NotFound:
        return PathRestoreBody(version=service.call(resolve_version, ResolveQuery(version)).version)
