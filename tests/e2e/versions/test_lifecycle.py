"""The lifecycle settings: whether snapshots may be made, and how long they are kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from svc_blackbox.client import Client, assert_error
from svc_blackbox.server import Server
from svc_blackbox.versions import PLURAL, SINGULAR, head_version, make_fork, make_snapshot, snapshot_names

DEFAULTS = {
    "snapshot_writes_enabled": True,
    "snapshot_retention": {"auto_months": 0, "manual_months": 0},
    "snapshot_schedule": {"hourly": 0, "daily": 0, "weekly": 0},
}


@pytest.fixture
def client(new_server: Callable[..., Server]) -> Client:
    return new_server().client()


def test_the_defaults(client: Client) -> None:
    response = client.get("/system/lifecycle")
    assert (response.status, response.json()) == (200, DEFAULTS)


def test_settings_are_kept_over_a_restart(new_server: Callable[..., Server]) -> None:
    server = new_server()
    changed = {
        "snapshot_writes_enabled": False,
        "snapshot_retention": {"auto_months": 3, "manual_months": 24},
        "snapshot_schedule": {"hourly": 24, "daily": 7, "weekly": 0},
    }
    response = server.client().send_json("PUT", "/system/lifecycle", changed)
    assert (response.status, response.json()) == (200, changed)
    server.kill()
    assert server.start().client().get("/system/lifecycle").json() == changed


@pytest.mark.parametrize(
    "body",
    [
        {"snapshot_writes_enabled": "yes"},
        {"snapshot_writes_enabled": 1},
        {"snapshot_retention": {"auto_months": -1}},
        {"snapshot_retention": {"manual_months": 1.5}},
        {"snapshot_retention": {"auto_months": "3"}},
        {"snapshot_retention": {"auto_months": 10**30}},
        {"snapshot_retention": []},
        {"no_such_setting": True},
        [],
        None,
    ],
)
def test_what_is_no_setting_is_400_and_changes_nothing(http: Client, body: object) -> None:
    before = http.get("/system/lifecycle").json()
    assert_error(http.send_json("PUT", "/system/lifecycle", body), 400, "INVALID_INPUT")
    assert http.get("/system/lifecycle").json() == before


def test_without_snapshot_writes_no_snapshot_and_no_restore(client: Client) -> None:
    client.store("/f", b"one")
    old = make_snapshot(client, "old")["root_hash"]
    client.store("/f", b"two")
    assert (
        client.send_json("PUT", "/system/lifecycle", {**DEFAULTS, "snapshot_writes_enabled": False}).status
        == 200
    )
    head = head_version(client)
    for target, body in (
        *((family.snapshot_routes[0], {"name": "new"}) for family in (SINGULAR, PLURAL)),
        *((family.restore, {"name": "old"}) for family in (SINGULAR, PLURAL)),
        *((family.restore_path("/f"), {"snapshot": "old"}) for family in (SINGULAR, PLURAL)),
    ):
        error = assert_error(client.post(target, body), 409, "CONFLICT")
        assert "snapshot_writes_enabled" in error["error"]
    assert (head_version(client), snapshot_names(client)) == (head, ["old"])
    assert client.read("/f", version=old) == b"one"
    make_fork(client, "forks-are-no-snapshots")
    assert client.delete(PLURAL.snapshot("old")).status == 200
    assert client.send_json("PUT", "/system/lifecycle", DEFAULTS).status == 200
    make_snapshot(client, "new")
