"""Where the machine keeps a database: in this process, or behind a real server. Both speak HTTP."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from svc_blackbox.server import Server

if TYPE_CHECKING:
    from svc.plugins import Plugins

__all__ = ["Answer", "Behind", "Place", "Within"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered with."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Place(Protocol):
    """A database that takes requests, and can be closed and opened again."""

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        query: Mapping[str, object],
    ) -> Answer:
        """Sends one request."""

    def reopen(self, *, kill: bool) -> None:
        """Closes the database, or has its process killed, and opens it again."""

    def close(self) -> None:
        """Ends it."""


@functools.cache
def plugins() -> Plugins:
    """The plugins of a database in this process, with an auth mode in which everyone is root."""
    from svc_testing import load_with_testing_auth

    return load_with_testing_auth("files", "history", "versions", "backup")


class Within:
    """A database in this process, and the application on it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()

    def _open(self) -> None:
        from falcon.testing import TestClient

        from svc.database import Database
        from svc.pipeline import PipelineSettings, create_app
        from svc.plugins import initialize

        self._database = Database(self._path)
        assert initialize(self._database, plugins()) == ()
        settings = PipelineSettings(auth="testing", access_log=False)
        self._app = create_app(self._database, plugins(), settings=settings)
        self._client = TestClient(self._app)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        query: Mapping[str, object],
    ) -> Answer:
        fields = dict(headers)
        if body is not None:
            fields["Content-Length"] = str(len(body))
        result = self._client.simulate_request(
            method, path, body=body, headers=fields, query_string=urlencode(query)
        )
        return Answer(result.status_code, {k.lower(): v for k, v in result.headers.items()}, result.content)

    def reopen(self, *, kill: bool) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        self._app.service.close()
        self._database.close()


class Behind:
    """A database behind ``svc start``, which can be killed."""

    def __init__(self, path: Path) -> None:
        self._server = Server(path, "--workers", "1").start()
        self._client = self._server.client()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        query: Mapping[str, object],
    ) -> Answer:
        found = self._client.request(method, path, body, dict(headers), **query)
        return Answer(found.status, {k.lower(): v for k, v in found.headers.items()}, found.body)

    def reopen(self, *, kill: bool) -> None:
        if kill:
            self._server.kill()
        else:
            assert self._server.stop() == 0
        self._client = self._server.start().client()

    def close(self) -> None:
        assert "Traceback" not in self._server.log_text()
        self._server.close()
