"""How strong keys, tokens and codes are, and how long they live at most."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from falcon.testing import Result, TestClient

from svc.pipeline import PipelineSettings, check_route, create_app
from svc.plugin import AuthContext, Database
from svc.plugins import initialize, load_plugins
from svc_auth_magic_link.codes import create_code
from svc_auth_self.mode import SelfContainedAuthMode
from svc_auth_self.signing import SigningKeys

DAY_S = 86_400
BITS_OF_HEX = 4
BITS_OF_BASE64 = 6


class Http:
    """An application in mode self-contained, and the root key of its database."""

    def __init__(self, client: TestClient, database: Database, key: str) -> None:
        self.client = client
        self.database = database
        self.key = key

    def post(self, path: str, body: Any, token: str | None = None) -> Result:
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self.client.simulate_post(path, body=json.dumps(body), headers=headers)

    def sign_in(self, key: str) -> dict[str, Any]:
        answer = self.post("/auth/token", {"api_key": key})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json
        return found

    def make_key(self, **body: Any) -> str:
        answer = self.post("/auth/keys", body, self.sign_in(self.key)["token"])
        assert answer.status_code == 201, answer.text
        return str(answer.json["key"])


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    plugins = load_plugins(["users", "auth.self", "auth.magic-link"], check_route=check_route)
    database = Database(tmp_path_factory.mktemp("secrets") / "secrets.svcdb")
    assert initialize(database, plugins) == ()
    line, _ = SelfContainedAuthMode().prepare(AuthContext(database, "", None))
    key = line.rpartition(" ")[2]
    app = create_app(database, plugins, settings=PipelineSettings(auth="self-contained"))
    yield Http(TestClient(app), database, key)
    app.service.close()


def test_keys_and_refresh_tokens_have_secrets_of_256_bits(http: Http) -> None:
    keys = [http.make_key() for _ in range(8)]
    secrets = [re.fullmatch(r"svc_k_[0-9a-f]{32}_([0-9a-f]+)", key)[1] for key in keys]
    assert {len(secret) * BITS_OF_HEX for secret in secrets} == {256}
    assert len(set(secrets)) == 8
    refresh = [http.sign_in(key)["refresh_token"] for key in keys]
    found = [
        re.fullmatch(r"rt_[0-9a-f]{32}_0_([0-9a-f]{64})([0-9a-f]{64})", token).groups() for token in refresh
    ]
    assert len({part for parts in found for part in parts}) == 16, (
        "of the chain and of the token, 256 bits each"
    )


def test_codes_of_magic_links_have_256_bits(http: Http) -> None:
    user_id = "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a90"
    codes = {create_code(http.database, user_id, "ann@example.com") for _ in range(8)}
    assert len(codes) == 8
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", code) for code in codes)
    assert 43 * BITS_OF_BASE64 >= 256


def test_signing_keys_are_of_ed25519(http: Http) -> None:
    token = http.sign_in(http.key)["token"]
    header = jwt.get_unverified_header(token)
    assert header["alg"] == "EdDSA"
    public = SigningKeys(http.database).public(header["kid"])
    assert type(public).__name__.endswith("Ed25519PublicKey")
    assert len(public.public_bytes_raw()) * 8 == 256


def test_no_sign_in_outlives_its_key_however_often_it_is_refreshed(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = http.sign_in(http.make_key(expires_in_days=50))["refresh_token"]
    real, real_ns, ahead = time.time, time.time_ns, [0]
    monkeypatch.setattr("time.time", lambda: real() + ahead[0])
    monkeypatch.setattr("time.time_ns", lambda: real_ns() + ahead[0] * 10**9)
    for days in (20, 40):
        ahead[0] = days * DAY_S
        token = http.post("/auth/refresh", {"refresh_token": token}).json["refresh_token"]
    ahead[0] = 51 * DAY_S
    answer = http.post("/auth/refresh", {"refresh_token": token})
    assert (answer.status_code, answer.json["code"]) == (401, "AUTH_REQUIRED")
