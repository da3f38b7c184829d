"""Who signs in and who tries is written, with the reason and the address, and without a secret."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from svc.plugin import AddressLog
from svc_auth_self import sign_in_log

from .conftest import Clock, Http, Serve  # noqa: TID252

MOST_LINES = 30
LOGGER = "svc.plugin.auth.self.sign-in"


@pytest.fixture(autouse=True)
def _no_failures_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_log, "_refused", AddressLog(sign_in_log._log, "refused sign-ins"))


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """What was written since the last call."""
    found = [
        {"event": record.getMessage(), "level": record.levelname, **vars(record).get("fields", {})}
        for record in caplog.records
        if record.name == LOGGER
    ]
    caplog.clear()
    return found


def test_who_signs_in_and_who_is_refused_is_written_with_the_reason_and_no_secret(
    serve: Serve, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    http = serve(login_failures=100)
    caplog.set_level(logging.INFO, LOGGER)
    ann = http.make_user("ann")
    good, expired, revoked = (http.make_key(user_id=ann, expires_in_days=days) for days in (9, 1, 9))
    http("DELETE", f"/auth/keys/{revoked['key_id']}", http.root)
    idle = http.make_user("idle")
    of_idle = http.make_key(user_id=idle, expires_in_days=9)
    http("PATCH", f"/system/users/{idle}", http.root, json={"is_active": False})
    caplog.clear()
    assert http.sign_in(good["key"]).status_code == 200
    (line,) = lines(caplog)
    assert (line["event"], line["level"], line["how"]) == ("signed in", "INFO", "API key")
    assert (line["user_id"], line["key_id"]) == (ann, good["key_id"])
    assert line["request_id"]
    assert "remote" in line
    clock.forward(86_401)
    wrong = {
        "it is no API key": ("hello", None),
        "there is no such key, or no longer": (revoked["key"], None),
        "it has expired": (expired["key"], expired["key_id"]),
        "its secret is wrong": (good["key"][:-4] + "0000", good["key_id"]),
    }
    for reason, (key, key_id) in wrong.items():
        assert http.sign_in(key).status_code == 401
        (line,) = lines(caplog)
        assert (line["event"], line["level"]) == ("a sign-in was refused", "WARNING")
        assert (line["reason"], line["key_id"], line["user_id"]) == (reason, key_id, None)
        assert key not in str(line)
        assert key[-20:] not in str(line)
    assert http.sign_in(of_idle["key"]).status_code == 401
    (line,) = lines(caplog)
    assert (line["reason"], line["key_id"]) == ("its owner may not sign in", of_idle["key_id"])


def test_who_guesses_fills_no_disk(http: Http, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(MOST_LINES + 20):
        assert http.sign_in("svc_k_" + "0" * 32 + "_" + "0" * 64).status_code in (401, 429)
    written = lines(caplog)
    assert len(written) == MOST_LINES + 1
    assert "not written" in written[-1]["event"]
    assert {line.get("reason") for line in written} >= {"too many have failed from this address"}
    assert http.sign_in(http.root_key).status_code == 200
