"""The process of a task: opens the database, runs the type, says what came of it, and ends.

It is started anew, never forked. Its order comes through the pipe, where no list of processes shows it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import msgspec

from svc.errors import InvalidInput, SvcError
from svc.plugin import Secret
from svc_cli import extensions_of, open_database
from svc_tasks.api import TASK_TYPES, Task, TaskCancelled, TaskStopped
from svc_tasks.queue import Queue
from svc_tasks.running.context import Channel, LogToSupervisor, RunContext, json_of
from svc_tasks.running.limits import apply_limits, die_with_parent
from svc_tasks.running.protocol import (
    MAXIMUM_JSON,
    MAXIMUM_LINE,
    Cancelled,
    Completed,
    Failed,
    Message,
    Order,
    Stopped,
)

__all__ = ["main"]

PLUGIN_ID = "tasks"

_MAXIMUM_ERROR = 2_000
_MAXIMUM_TRACE = 16_000


def main() -> None:
    """Runs one task. Called in a new process, which it ends."""
    incoming, outgoing = _private_pipes()
    order = msgspec.json.decode(_first_line(incoming), type=Order)
    die_with_parent(order.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable(file=2, all_threads=False)
    channel = Channel(incoming, outgoing)
    root = logging.getLogger()
    root.handlers = [LogToSupervisor(channel, order.log_level)]
    root.setLevel(order.log_level)
    with contextlib.suppress(BrokenPipeError):
        channel.say(_run(order, channel))
    # Threads that the type has left must not keep the process.
    os._exit(0)


def _run(order: Order, channel: Channel) -> Message:
    try:
        apply_limits(order.memory)
        with open_database(
            order.location, order.plugin_id, max_tree_entries=order.max_tree_entries
        ) as database:
            task = Queue(database).get(order.task_id)
            if task.status != "running" or task.started_at != order.started_at:
                return Stopped()
            found = extensions_of(database, PLUGIN_ID, TASK_TYPES).get(order.task_type)
            if found is None:
                return Failed(f"No plugin that is in use has the task type {order.task_type!r}.")
            configuration = _configuration(order, found.context.configuration)
            context = RunContext(order, task, database, configuration, channel)
            channel.say_alive()
            return Completed(_result(task, found.value.run(context)))
    except TaskCancelled:
        return Cancelled()
    except TaskStopped:
        return Stopped()
    except MemoryError:
        return Failed(f"It needs more memory than the {order.memory >> 20:,} MiB that a task may have.")
    except SvcError as error:
        return Failed(_text(error.message), _trace(error))
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the end of this task alone
        return Failed(_text(f"{type(error).__name__}: {error}"), _trace(error))


def _result(task: Task, result: Mapping[str, Any] | None) -> Any:
    if result is None:
        return None
    encoded = json_of(result)
    if len(encoded) > MAXIMUM_JSON:
        raise InvalidInput(
            f"The result of a task of the type {task.task_type!r} has {len(encoded):,} bytes, and may have "
            f"{MAXIMUM_JSON:,}."
        )
    return msgspec.json.decode(encoded)


def _configuration(order: Order, own: Any) -> Any:
    """The settings as the supervisor has them: those of its deployment come before those in the database."""
    if own is None or order.configuration is None:
        return own
    return msgspec.convert(order.configuration, type(own), dec_hook=_secret)


def _secret(kind: type, value: Any) -> Any:
    if kind is not Secret:
        raise TypeError(f"The type {kind.__name__} is not one that settings can have")
    return Secret(value)


def _text(words: str) -> str:
    return " ".join(words.split())[:_MAXIMUM_ERROR]


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-_MAXIMUM_TRACE:]


def _private_pipes() -> tuple[int, int]:
    """Keeps the pipes under other numbers: a library that prints must not speak for the task."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return incoming, outgoing


def _first_line(incoming: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        # One byte at a time: what follows the line is for later.
        part = os.read(incoming, 1)
        if not part or len(line) > MAXIMUM_LINE:
            os._exit(1)
        line += part
    return line
