"""What gunicorn lets others do for each request: hooks and the access log. Nothing runs that nobody set."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from svc_worker.responses import Response

__all__ = ["Hooks"]


class RequestView:
    """A request as gunicorn's hooks and access log know it."""

    def __init__(self, environ: dict[str, Any]) -> None:
        self.method: str = environ["REQUEST_METHOD"]
        self.uri: str = environ["RAW_URI"]
        self.path: str = environ["RAW_URI"].partition("?")[0]
        self.query: str = environ["QUERY_STRING"]
        self.version = (1, 0) if environ["SERVER_PROTOCOL"] == "HTTP/1.0" else (1, 1)
        self.headers = [
            (key.removeprefix("HTTP_").replace("_", "-"), value)
            for key, value in environ.items()
            if key.startswith("HTTP_") or key in ("CONTENT_TYPE", "CONTENT_LENGTH")
        ]


class Hooks:
    """The hooks of a worker: ``active`` if a request calls any, ``timed`` if one wants its duration."""

    def __init__(self, worker: Any, cfg: Any, log: Any) -> None:
        self._worker = worker
        self._log = log
        self._pre_request = _chosen(cfg, "pre_request")
        self._post_request = _chosen(cfg, "post_request")
        self._logs_access = bool(getattr(log, "access_log_enabled", False) or cfg.statsd_host)
        self.timed = self._logs_access
        self.active = bool(self._logs_access or self._pre_request or self._post_request)

    def before(self, environ: dict[str, Any]) -> None:
        """Before the application is called."""
        if self._pre_request is not None:
            self._pre_request(self._worker, RequestView(environ))

    def after(self, environ: dict[str, Any], response: Response, elapsed: timedelta) -> None:
        """After the answer, whatever became of it."""
        request = RequestView(environ)
        if isinstance(response.headers, dict):
            response.headers = list(response.headers.items())
        if self._logs_access:
            response.status = response.status or "-"
            self._log.access(response, request, environ, elapsed)
        if self._post_request is not None:
            try:
                self._post_request(self._worker, request, environ, response)
            except Exception:  # noqa: BLE001 - the answer is out; a hook must not end the connection
                self._log.exception("The hook post_request failed.")


def _chosen(cfg: Any, name: str) -> Any:
    setting = cfg.settings[name]
    return None if setting.get() is setting.default else setting.get()
