"""Whom the server refuses is written to its log, with the reason, no secret, and not without end."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from falcon.testing import TestClient

from svc.pipeline import Application
from svc.pipeline.address_log import MOST_LINES

SECRET = "a-secret-that-nobody-may-read"


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture) -> Any:
    """What the log says of refusals: their fields, one after the other."""
    caplog.set_level(logging.INFO, "svc.refused")

    def read() -> list[dict[str, Any]]:
        lines = [record.fields for record in caplog.records if record.name == "svc.refused"]
        caplog.clear()
        return lines

    return read


@pytest.mark.parametrize(
    ("token", "method", "path", "status", "reason"),
    [
        (None, "GET", "/things/a", 401, "no credentials"),
        (SECRET, "GET", "/things/a", 401, "the credentials are not good"),
        (None, "PUT", "/kinds", 401, "no credentials"),
        ("nobody", "GET", "/things/a", 403, "the caller may not do this"),
        ("reader", "PUT", "/things/a", 403, "the caller may not do this"),
        ("reader", "DELETE", "/kinds", 403, "the caller may not do this"),
        ("scoped", "GET", "/things/beside", 404, "the path is hidden from the caller"),
        ("share", "GET", "/things/own/a", 404, "the path is hidden from the caller"),
        ("root", "GET", "/things/.svc-system/users", 404, "the path is hidden from the caller"),
        ("reader", "GET", "/things/.system", 404, "the path is hidden from the caller"),
        ("root", "GET", "/things/a/../b", 400, "the path breaks the rules"),
        ("root", "GET", "/things/a%00b", 400, "the path breaks the rules"),
    ],
)
def test_a_refusal_is_written_with_its_reason(
    anonymous: TestClient, written: Any, token: str | None, method: str, path: str, status: int, reason: str
) -> None:
    headers = {"X-Request-Id": "call-7", **({} if token is None else {"Authorization": f"Bearer {token}"})}
    answer = anonymous.simulate_request(method, path, headers=headers, extras={"REMOTE_ADDR": "192.0.2.7"})
    assert answer.status_code == status
    [fields] = written()
    assert fields["reason"] == reason
    assert (fields["method"], fields["request_id"], fields["remote"]) == (method, "call-7", "192.0.2.7")
    known = token not in (None, SECRET) and status != 400 and not path.startswith("/things/.")
    assert (fields["user"] is not None) == known
    assert SECRET not in str(fields)


@pytest.mark.parametrize(
    ("token", "method", "path", "status"),
    [
        ("root", "GET", "/things/conflict", 409),
        ("root", "GET", "/nothing", 404),
        ("reader", "GET", "/things/boom", 500),
        ("root", "PATCH", "/things/a", 405),
        ("scoped", "GET", "/things/own/a", 200),
    ],
)
def test_what_is_no_refusal_is_not(
    anonymous: TestClient, written: Any, token: str, method: str, path: str, status: int
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    assert anonymous.simulate_request(method, path, headers=headers).status_code == status
    assert written() == []


def test_lines_about_one_address_are_bounded_and_say_so(app: Application, written: Any) -> None:
    client = TestClient(app)
    for _ in range(MOST_LINES + 20):
        assert client.simulate_get("/things/a").status_code == 401
    lines = written()
    assert len(lines) == MOST_LINES + 1
    assert "reason" not in lines[-1]
    assert client.simulate_get("/things/a", extras={"REMOTE_ADDR": "192.0.2.7"}).status_code == 401
    assert [line["remote"] for line in written()] == ["192.0.2.7"]
