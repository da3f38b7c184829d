"""gunicorn's own messages in the one log, in its form and without secrets."""

from __future__ import annotations

import logging
from typing import Any

from gunicorn import glogging  # type: ignore[import-untyped]

from svc_server.logs import configure_logs

__all__ = ["GunicornLog"]

_QUIET = (
    "Booting worker",
    "Worker exiting",
    "Listening at",
    "Using worker",
    "Starting gunicorn",
    "Handling signal",
)


class GunicornLog(glogging.Logger):  # type: ignore[misc]
    """gunicorn's logger: hands everything to the log of svc. Requests are logged by the pipeline."""

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn at the start and at a reload."""
        self.cfg = cfg
        configure_logs(getattr(cfg, "svc_log_format", "pretty"))
        for logger in (self.error_log, self.access_log):
            logger.handlers.clear()
            logger.propagate = True
        self.error_log.setLevel(logging.INFO)
        self.error_log.addFilter(_demote)
        self.access_log.setLevel(logging.CRITICAL)

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """Writes nothing: the pipeline has written its line."""


def _demote(record: logging.LogRecord) -> bool:
    return not (record.levelno <= logging.INFO and str(record.msg).startswith(_QUIET))
