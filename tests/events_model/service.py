"""A database that is served in this process, with users, keys, tokens and webhooks as everywhere."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from falcon.testing import TestClient

from events_model.readers import Stream
from svc.database import Database
from svc.pipeline import PipelineSettings, check_route, create_app
from svc.plugin import AuthContext
from svc.plugins import Plugins, configure, initialize, load_plugins

__all__ = ["Service"]

PLUGINS = ("files", "versions", "users", "auth.self", "sharing", "events", "events.sse", "events.webhook")
LOCAL = {"allow_private": True, "allow_any_port": True}


@functools.cache
def _plugins() -> Plugins:
    loaded = load_plugins(list(PLUGINS), check_route=check_route)
    assert not loaded.problems
    return loaded


class Service:
    """The routes in the name of root, and streams in anybody's.

    Attributes:
        database: the open database.
    """

    def __init__(self, path: Path) -> None:
        from svc_auth_self.mode import SelfContainedAuthMode

        self.database = Database(path)
        assert initialize(self.database, _plugins()) == ()
        configure(self.database, _plugins(), "events.webhook", LOCAL)
        lines = list(SelfContainedAuthMode().prepare(AuthContext(self.database, "", None)))
        self.app = create_app(self.database, _plugins(), settings=PipelineSettings(auth="self"))
        self._client = TestClient(self.app)
        self._root = ""
        self._root = self.token(lines[0].rpartition(" ")[2])

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a request as root; it must succeed. Returns the answer's JSON."""
        headers = {"Authorization": f"Bearer {self._root}"} if self._root else {}
        content = body if isinstance(body, bytes) or body is None else json.dumps(body)
        if isinstance(content, str):
            headers["Content-Type"] = "application/json"
        answer = self._client.simulate_request(method, path, body=content, headers=headers)
        assert answer.status_code in (200, 201), (method, path, body, answer.text)
        return answer.json

    def token(self, key: str) -> str:
        return str(self("POST", "/auth/token", {"api_key": key})["token"])

    def token_of(self, user_id: str, rules: tuple[tuple[str, str], ...]) -> str:
        """A token by a new key of a user."""
        body = {"user_id": user_id, "rules": [{glob: flags} for glob, flags in rules]}
        return self.token(self("POST", "/auth/keys", body)["key"])

    def stream(self, token: str | None, query: str, last: str, *, own: bool = False) -> Stream:
        """Opens a stream; ``token`` None is root's."""
        path = "/events/me" if own else "/system/events"
        return Stream(self.app, path, query, token or self._root, last)

    def close(self) -> None:
        self.app.service.close()
