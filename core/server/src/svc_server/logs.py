"""Structured logs: every line of svc, of its plugins and of gunicorn, in one form, without secrets.

``pretty`` is for people, ``json`` (one object a line) for machines; both go to standard error, so that
standard output holds only what a program prints for its caller.

A line is written by the standard library's logging. What it says beside its message are the members of
``fields``: ``logger.error("no answer", extra={"fields": {"peer": name}})``. Members of ``shown`` are written
as they are: a secret that whoever runs the server has asked to be shown stands there, and nothing else.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import msgspec

from svc.native_locks import native_reentrant_lock
from svc.redaction import redact_own, redact_value

__all__ = ["configure_logs"]

_encode = msgspec.json.Encoder(enc_hook=str).encode


def configure_logs(log_format: str = "pretty", level: int = logging.INFO) -> None:
    """Sets up the standard library's logging, as ``pretty`` or ``json``; the last call of a process holds."""
    _use_native_lock()
    render = _render_json if log_format == "json" else _render_pretty
    root = logging.getLogger()
    _use_handler(root, _LineFormatter(render, redact_value))
    root.setLevel(level)
    access = logging.getLogger("svc.access")
    # The members of these lines are known: texts and numbers, whose names are not those of secrets.
    _use_handler(access, _LineFormatter(render, _redact_access))
    access.propagate = False


def _use_native_lock() -> None:
    """Gives ``logging`` itself a native lock in the place of that of gevent, as ``_LineHandler`` has one."""
    native = native_reentrant_lock()
    if not isinstance(logging._lock, type(native)):  # type: ignore[attr-defined]
        logging._lock = native  # type: ignore[attr-defined]


class _LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines of greenlets and native threads: a lock of gevent could leave one waiting for ever."""

    def createLock(self) -> None:  # noqa: N802 - of logging
        """Called by logging. Nothing that is done under the lock lets another greenlet run."""
        super().createLock()
        self.lock = native_reentrant_lock()  # type: ignore[assignment]


class _LineFormatter(logging.Formatter):
    def __init__(
        self, render: Callable[[dict[str, Any]], str], redact: Callable[[Any], dict[str, Any]]
    ) -> None:
        super().__init__()
        self._render = render
        self._redact = redact
        self._second = (0, "")

    def format(self, record: logging.LogRecord) -> str:
        members = {"event": record.getMessage(), **getattr(record, "fields", {})}
        if record.exc_info:
            members["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            members["stack"] = record.stack_info
        return self._render(
            {
                "time": self._time(record.created),
                "level": record.levelname.lower(),
                "logger": record.name,
                **self._redact(members),
                **getattr(record, "shown", {}),
            }
        )

    def _time(self, created: float) -> str:
        second, text = self._second
        if int(created) != second:
            second = int(created)
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = (second, text)
        return f"{text}.{int((created - second) * 1_000_000):06d}Z"


def _redact_access(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: redact_own(value) if isinstance(value, str) else value for name, value in members.items()}


def _use_handler(logger: logging.Logger, formatter: logging.Formatter) -> None:
    """Gives a logger a handler of ours, in the place of an earlier one of ours."""
    for present in list(logger.handlers):
        if getattr(present, "belongs_to_svc", False):
            logger.removeHandler(present)
    handler = _LineHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.belongs_to_svc = True  # type: ignore[attr-defined]
    logger.addHandler(handler)


def _render_json(event: dict[str, Any]) -> str:
    return _encode(event).decode("utf-8", "replace")


def _render_pretty(event: dict[str, Any]) -> str:
    fields = dict(event)
    time, level = fields.pop("time"), fields.pop("level")
    logger, message = fields.pop("logger"), fields.pop("event")
    trace = fields.pop("exception", None)
    members = " ".join(f"{name}={_plain(value)}" for name, value in fields.items() if value is not None)
    line = f"{time} {level:<7} {logger}: {message}{' ' if members else ''}{members}"
    return f"{line}\n{trace}" if trace else line


def _plain(value: Any) -> str:
    """A value on one line: control characters of a client must not forge lines of the log."""
    text = str(value)
    return text if text.isprintable() and " " not in text and text else ascii(text)
