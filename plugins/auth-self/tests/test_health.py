"""Health says when nobody will be able to sign in as root any more."""

from __future__ import annotations

import time
from typing import Any

import pytest


def check_of(http: Any) -> dict[str, Any]:
    answer = http("GET", "/system/health")
    found: dict[str, Any] = answer.json["checks"]["auth-self.root-key"]
    return found


def forward_to_end_of_root_key(http: Any, clock: Any, days_left: float) -> None:
    (key,) = [one for one in http("GET", "/auth/keys", http.root).json if not one["rules"]]
    clock.forward(key["expires_at"] / 1000 - time.time() - days_left * 86_400)


DAYS = [(700, "healthy"), (20, "healthy"), (10, "degraded"), (-1, "degraded")]


@pytest.mark.parametrize(("days_left", "status"), DAYS)
def test_the_last_key_of_root_ends(http: Any, clock: Any, days_left: int, status: str) -> None:
    forward_to_end_of_root_key(http, clock, days_left)
    assert check_of(http)["status"] == status


@pytest.mark.parametrize(("rules", "status"), [([{"/a/**": "crudlify"}], "degraded"), ([], "healthy")])
def test_a_later_key_makes_it_well_unless_it_is_scoped(
    http: Any, clock: Any, rules: Any, status: str
) -> None:
    (first,) = http("GET", "/auth/keys", http.root).json
    clock.forward(1_800)
    http.make_key(rules=rules, expires_in_days=3_650)
    clock.forward(first["expires_at"] / 1000 - time.time() - 14 * 86_400 + 600)
    assert check_of(http)["status"] == status
