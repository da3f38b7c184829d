"""Structured logs: every line of svc, of its plugins and of gunicorn, in one form, without secrets.

``pretty`` is for people, ``json`` (one object a line) for machines; both go to standard error, so that
standard output holds only what a program prints for its caller.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import MutableMapping
from typing import Any

import msgspec
import structlog
from structlog.typing import EventDict, Processor

from svc.server.redaction import redact_event, redact_text

__all__ = ["LOG_FORMATS", "configure_logs"]

LOG_FORMATS = ("pretty", "json")

_encode = msgspec.json.Encoder(enc_hook=str).encode


def configure_logs(log_format: str = "pretty", level: int = logging.INFO) -> None:
    """Sets up structlog and the standard library's logging. Called once a process; the last call holds.

    Args:
        log_format: ``pretty`` or ``json``.
        level: lowest level that is written.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
    ]
    ending: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        redact_event,
        _render_json if log_format == "json" else _render_pretty,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.PositionalArgumentsFormatter()], processors=ending
        )
    )
    root = logging.getLogger()
    _use_handler(root, handler)
    root.setLevel(level)
    requests = logging.StreamHandler(sys.stderr)
    requests.setFormatter(_AccessFormatter(_render_json if log_format == "json" else _render_pretty))
    access = logging.getLogger("svc.access")
    _use_handler(access, requests)
    access.propagate = False


class _AccessFormatter(logging.Formatter):
    """Renders the line of a request, whose members are known, without structlog's processors.

    Args:
        render: as the last processor of all other lines.
    """

    def __init__(self, render: Processor) -> None:
        super().__init__()
        self._render = render
        self._second = (0, "")

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line, without secrets."""
        event: EventDict = {
            "time": self._time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in getattr(record, "fields", {}).items():
            event[name] = redact_text(value) if isinstance(value, str) else value
        return str(self._render(None, "", event))

    def _time(self, created: float) -> str:
        second, text = self._second
        if int(created) != second:
            second = int(created)
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = (second, text)
        return f"{text}.{int((created - second) * 1_000_000):06d}Z"


def _use_handler(logger: logging.Logger, handler: logging.Handler) -> None:
    """Gives a logger our handler, in the place of an earlier one of ours."""
    for present in list(logger.handlers):
        if getattr(present, "belongs_to_svc", False):
            logger.removeHandler(present)
    handler.belongs_to_svc = True  # type: ignore[attr-defined]
    logger.addHandler(handler)


def _render_json(_logger: Any, _method: str, event: EventDict) -> str:
    return _encode(_ordered(event)).decode("utf-8", "replace")


def _render_pretty(_logger: Any, _method: str, event: EventDict) -> str:
    fields = _ordered(event)
    time, level = fields.pop("time", ""), fields.pop("level", "")
    logger, message = fields.pop("logger", ""), fields.pop("event", "")
    trace = fields.pop("exception", None)
    members = " ".join(f"{name}={_plain(value)}" for name, value in fields.items() if value is not None)
    line = f"{time} {level:<7} {logger}: {message}{' ' if members else ''}{members}"
    return f"{line}\n{trace}" if trace else line


def _ordered(event: MutableMapping[str, Any]) -> dict[str, Any]:
    first = {name: event[name] for name in ("time", "level", "logger", "event") if name in event}
    return {**first, **{name: value for name, value in event.items() if name not in first}}


def _plain(value: Any) -> str:
    """A value on one line: control characters of a client must not forge lines of the log."""
    text = str(value)
    return text if text.isprintable() and " " not in text and text else ascii(text)
