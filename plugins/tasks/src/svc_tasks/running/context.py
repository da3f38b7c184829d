"""What a task type is handed in its own process, and the channel to the supervisor."""

from __future__ import annotations

import logging
import os
import select
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from svc.errors import InvalidInput, NotFound
from svc.plugin import Database
from svc_tasks.api import Json, Task, TaskCancelled, TaskStopped
from svc_tasks.queue import Queue
from svc_tasks.running.protocol import (
    CANCEL,
    MAXIMUM_JSON,
    STOP,
    Alive,
    Logged,
    Message,
    Order,
    Progressed,
    Saved,
)

__all__ = ["Channel", "LogToSupervisor", "RunContext", "json_of"]

_TELL_SECONDS = 0.2
_ALIVE_SECONDS = 1.0
_BATCHES = 10
_MAXIMUM_MESSAGE = 500
_MAXIMUM_TEXT = 16_000


class Channel:
    """The pipes to the supervisor."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._said_at = 0.0
        self.is_cancelled = False
        self.is_stopped = False

    def say(self, message: Message) -> None:
        """Sends a message. Blocks while the supervisor does not listen."""
        rest = memoryview(msgspec.json.encode(message) + b"\n")
        while rest:
            rest = rest[os.write(self._outgoing, rest) :]
        self._said_at = time.monotonic()

    def say_alive(self) -> None:
        """Shows that the task works, once a second at most."""
        if time.monotonic() - self._said_at > _ALIVE_SECONDS:
            self.say(Alive())

    def listen(self) -> None:
        """Takes in what the supervisor has said. Does not block."""
        while select.select([self._incoming], [], [], 0)[0]:
            orders = os.read(self._incoming, 64)
            self.is_cancelled |= CANCEL in orders
            # Without a supervisor nobody writes down what becomes of the run.
            self.is_stopped |= STOP in orders or not orders
            if not orders:
                return


class RunContext:
    """See ``svc_tasks.api.TaskContext``."""

    def __init__(
        self, order: Order, task: Task, database: Database, configuration: Any, channel: Channel
    ) -> None:
        self._order = order
        self._task = task
        self._channel = channel
        self._checkpoint = task.checkpoint
        self._done = self._total = 0
        self._message: str | None = None
        self._batches: deque[tuple[float, int]] = deque(maxlen=_BATCHES)
        self._batch_began = time.monotonic()
        self._told_at = float("-inf")
        self.database = database
        self.configuration = configuration
        self.logger = logging.getLogger(f"svc.plugin.{order.plugin_id}")

    @property
    def task_id(self) -> str:
        """The task."""
        return self._task.id

    @property
    def args(self) -> Mapping[str, Any]:
        """The arguments."""
        return self._task.args

    @property
    def actor(self) -> str | None:
        """Who asked for the task."""
        return self._task.actor

    @property
    def checkpoint(self) -> Json:
        """What was saved last."""
        return self._checkpoint

    def begin(self, total: int, message: str | None = None, *, done: int = 0) -> None:
        """Says how much there is to do."""
        self._total, self._done = max(0, total), max(0, done)
        self._message = _line(message)
        self._batches.clear()
        self._batch_began = time.monotonic()
        self._tell()

    def advance(self, count: int, message: str | None = None) -> None:
        """Says that one batch is done, and ends the run here when it shall end."""
        now = time.monotonic()
        self._batches.append((now - self._batch_began, max(0, count)))
        self._batch_began = now
        self._done += max(0, count)
        if message is not None:
            self._message = _line(message)
        if now - self._told_at >= _TELL_SECONDS or self._done == self._total:
            self._tell()
        self.check()

    def save_checkpoint(self, value: Json) -> None:
        """Keeps what the next run needs to go on from here."""
        encoded = json_of(value)
        if len(encoded) > MAXIMUM_JSON:
            raise InvalidInput(
                f"A checkpoint has at most {MAXIMUM_JSON:,} bytes as JSON.", limit=MAXIMUM_JSON
            )
        kept = msgspec.json.decode(encoded)

        def save(task: Task) -> Task | None:
            if task.status != "running" or task.started_at != self._order.started_at:
                # It was cancelled, or another run has begun: what this one does counts no more.
                self._channel.is_cancelled = True
                return None
            return msgspec.structs.replace(task, checkpoint=kept, attempts=0)

        try:
            Queue(self.database).change(self.task_id, save, f"checkpoint of task {self.task_id}")
        except NotFound:
            self._channel.is_cancelled = True
        self._checkpoint = kept
        self._channel.say(Saved())

    def check(self) -> None:
        """Ends the run here when it shall end."""
        self._look()
        if self._channel.is_cancelled:
            raise TaskCancelled(f"The task {self.task_id} was cancelled.")
        if self._channel.is_stopped:
            raise TaskStopped(f"The run of task {self.task_id} was told to end.")

    def is_cancelled(self) -> bool:
        """Whether the task was cancelled."""
        self._look()
        return self._channel.is_cancelled

    def should_stop(self) -> bool:
        """Whether the run shall end."""
        self._look()
        return self._channel.is_cancelled or self._channel.is_stopped

    def _look(self) -> None:
        self._channel.listen()
        self._channel.say_alive()

    def _tell(self) -> None:
        self._told_at = time.monotonic()
        self._channel.say(Progressed(self._done, self._total, self._eta_ms(), self._message))

    def _eta_ms(self) -> int | None:
        """What the rest takes at the pace of the last batches."""
        items = sum(count for _, count in self._batches)
        if not items or self._total <= 0:
            return None
        seconds = sum(spent for spent, _ in self._batches)
        return round(max(0, self._total - self._done) * seconds / items * 1000)


class LogToSupervisor(logging.Handler):
    """Lets what the process logs appear in the log of the server."""

    def __init__(self, channel: Channel, level: int) -> None:
        super().__init__(level)
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        """Sends one line."""
        try:
            text = self.format(record)
            fields = getattr(record, "fields", None)
            if isinstance(fields, dict) and fields:
                text += " " + " ".join(f"{name}={value}" for name, value in fields.items())
            self._channel.say(Logged(record.levelno, record.name, text[:_MAXIMUM_TEXT]))
        except Exception:  # noqa: BLE001 - what can't be logged must not end the work
            self.handleError(record)


def json_of(value: Any) -> bytes:
    """Returns a value as JSON."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"This is not JSON: {error}.") from None


def _line(message: str | None) -> str | None:
    return None if message is None else " ".join(message.split())[:_MAXIMUM_MESSAGE]
