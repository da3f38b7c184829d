"""How many connections a worker takes: what its open files allow."""

from __future__ import annotations

import logging
import resource

import pytest

from svc_worker import listening

LOG = logging.getLogger("test")


@pytest.mark.parametrize(
    ("hard", "wanted", "taken"),
    [
        (20_000, 10_000, 10_000),
        (4096, 10_000, 4096 - listening.RESERVE),
        (300, 10_000, 172),
        (100, 10_000, 25),
        (2, 10, 1),
        (resource.RLIM_INFINITY, 10_000, 10_000),
    ],
)
def test_connections_are_bounded_by_open_files(monkeypatch, hard, wanted, taken) -> None:
    limits = [min(1024, hard) if hard >= 0 else 1024, hard]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.__setitem__(slice(None), pair))
    assert listening.connections_that_fit(wanted, LOG) == taken
    assert limits[0] == (hard if hard >= 0 else listening.MOST_FILES)


def test_a_limit_that_can_not_be_raised_is_kept(monkeypatch) -> None:
    def refuse(*_) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert listening.connections_that_fit(10_000, LOG) == 1024 - listening.RESERVE
