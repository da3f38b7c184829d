"""A collection in a process of its own, so that who asks for it goes on serving others meanwhile.

``python -m svc_task_gc.process DATABASE`` reads what to do from its standard input, one line of JSON, and
writes the report, or what went wrong, to its standard output. When its input ends, as with the death of its
parent, the collection ends too, in order.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import msgspec

from svc.errors import DatabaseBusy, ServiceUnavailable, SvcError
from svc.plugin import without_turn
from svc_task_gc.configuration import GcConfiguration

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["collect_in_process"]

_NICE = 10
_RETRY_AFTER_S = 10

_COLLECTED: WeakSet[Database] = WeakSet()
"""Databases whose collection this process has begun."""


def collect_in_process(
    database: Database, settings: GcConfiguration, request: dict[str, Any]
) -> dict[str, Any]:
    """Collects in another process and returns the report; blocks.

    Args:
        database: the database, open here.
        settings: those of the plugin, as they hold here: the deployment may have set some.
        request: ``dry_run``, ``keep_days`` (None takes that of the settings) and ``actor``.

    Raises:
        SvcError: what the collection raised.
        DatabaseBusy: this process has begun another one.
        ServiceUnavailable: its process could not be started, or died.
    """
    command = [sys.executable, "-P", "-m", "svc_task_gc.process", str(database.path)]
    order = {
        "settings": msgspec.to_builtins(settings),
        "max_tree_entries": database.max_tree_entries,
        "request": request,
    }
    if database in _COLLECTED:  # There is one at a time anyway; many that find it out cost much.
        raise DatabaseBusy(
            "Another collection is at work; try again when it has ended.", retry_after=_RETRY_AFTER_S
        )
    _COLLECTED.add(database)
    try:
        return _ask(command, order)
    finally:
        _COLLECTED.discard(database)


def _ask(command: list[str], order: dict[str, Any]) -> dict[str, Any]:
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        raise ServiceUnavailable(f"The collection could not be started: {error.strerror}.") from error
    with process, without_turn():
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        process.wait()
    if not answer:
        raise ServiceUnavailable("The process of the collection died; nothing that is needed was touched.")
    found: dict[str, Any] = json.loads(answer)
    if "error" in found:
        raise _error(found["error"])
    report: dict[str, Any] = found["report"]
    return report


def _error(described: dict[str, Any]) -> SvcError:
    from svc import errors

    kind = getattr(errors, described["kind"], SvcError)
    return kind(described["message"], **described["details"])


def _main(path: str) -> None:
    with suppress(OSError):
        os.nice(_NICE)
    order = json.loads(sys.stdin.buffer.readline())
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.buffer.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        answer = {"report": _collect(path, order, ended)}
    except SvcError as error:
        answer = {
            "error": {"kind": type(error).__name__, "message": error.message, "details": error.details},
        }
    sys.stdout.buffer.write(json.dumps(answer, default=str).encode() + b"\n")
    sys.stdout.buffer.flush()
    os._exit(0)


def _collect(path: str, order: dict[str, Any], ended: threading.Event) -> dict[str, Any]:
    from svc_cli import open_database
    from svc_task_gc.collecting import collect_garbage

    settings = msgspec.convert(order["settings"], GcConfiguration)
    with open_database(path, "task.gc", max_tree_entries=order["max_tree_entries"]) as database:
        return collect_garbage(database, settings, should_stop=ended.is_set, **order["request"])


if __name__ == "__main__":
    _main(sys.argv[1])
