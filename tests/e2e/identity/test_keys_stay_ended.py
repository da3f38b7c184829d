"""Keys are of no version: going back revives none that was revoked, and ends none that was made since."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from falcon.testing import Result, TestClient

from svc.pipeline import PipelineSettings, check_route, create_app
from svc.plugin import AuthContext, Database
from svc.plugins import initialize, load_plugins
from svc_auth_self.mode import SelfContainedAuthMode

PLUGINS = ("auth.self", "backup", "files", "users", "versions")


class Http:
    """An application in mode self-contained, asked as root."""

    def __init__(self, client: TestClient, key: str) -> None:
        self._client = client
        self.root = str(self.sign_in(key).json["token"])

    def __call__(self, method: str, path: str, value: Any = None, token: str | None = None) -> Result:
        headers = {"Authorization": f"Bearer {token or self.root}"}
        body: Any = value
        if value is not None and not isinstance(value, bytes):
            headers["Content-Type"] = "application/json"
            body = json.dumps(value)
        return self._client.simulate_request(method, path, body=body, headers=headers)

    def sign_in(self, key: str) -> Result:
        return self._client.simulate_post("/auth/token", json={"api_key": key})


@pytest.fixture
def http(tmp_path: Any) -> Iterator[Http]:
    plugins = load_plugins(PLUGINS, check_route=check_route)
    database = Database(tmp_path / "keys.svcdb")
    assert initialize(database, plugins) == ()
    line, _ = SelfContainedAuthMode().prepare(AuthContext(database, "", None))
    key = line.rpartition(" ")[2]
    app = create_app(database, plugins, settings=PipelineSettings(auth="self-contained"))
    yield Http(TestClient(app), key)
    app.service.close()


def restore(http: Http, _export: bytes) -> Result:
    return http("POST", "/versions/restore", {"name": "then"})


def promote(http: Http, _export: bytes) -> Result:
    return http("POST", "/versions/forks/then/promote", {"force": True})


def import_and_promote(http: Http, export: bytes) -> Result:
    return http("POST", "/versions/import?promote=true&force=true", export)


@pytest.mark.parametrize("go_back", [restore, promote, import_and_promote], ids=lambda one: one.__name__)
def test_going_back_revives_no_key_and_ends_none(
    http: Http, go_back: Callable[[Http, bytes], Result]
) -> None:
    old = http("POST", "/auth/keys", {"label": "old"}).json
    token = http.sign_in(old["key"]).json
    http("PUT", "/files/a", b"then")
    http("POST", "/versions/snapshots", {"name": "then"})
    http("POST", "/versions/forks", {"name": "then"})
    export = http("POST", "/versions/export").content
    assert old["key"].encode() not in export
    http("DELETE", f"/auth/keys/{old['key_id']}")
    new = http("POST", "/auth/keys", {"label": "new"}).json
    http("PUT", "/files/a", b"now")

    assert go_back(http, export).status_code == 200
    assert http("GET", "/files/a").content == b"then"
    assert http.sign_in(old["key"]).status_code == 401
    assert http("GET", "/files/a", token=token["token"]).status_code == 401
    assert http("POST", "/auth/refresh", {"refresh_token": token["refresh_token"]}).status_code == 401
    assert http.sign_in(new["key"]).status_code == 200
    assert [one["label"] for one in http("GET", "/auth/keys").json] == ["root", "new"]
