"""Warnings about an address are bounded within a minute."""

from __future__ import annotations

import logging

import pytest

from svc.pipeline import address_log
from svc.pipeline.address_log import MOST_LINES, AddressLog

LOGGER = logging.getLogger("svc.test.addresses")


def test_an_address_is_bounded_and_others_are_not(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(address_log.time, "monotonic", lambda: now[0])
    log = AddressLog(LOGGER, "guesses")

    def written(address: str | None, times: int) -> list[str]:
        caplog.clear()
        for number in range(times):
            log.warn_about("guessed", address, {"number": number})
        return [record.getMessage() for record in caplog.records]

    last = "further guesses of this address are not written for a minute"
    assert written("a", MOST_LINES + 5) == ["guessed"] * MOST_LINES + [last]
    assert written("a", 5) == []
    assert written("b", 2) == ["guessed"] * 2
    assert written(None, 1) == ["guessed"]
    now[0] += 60
    assert written("a", 1) == ["guessed"]


def test_addresses_without_number_cost_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_log, "_MOST_ADDRESSES", 10)
    monkeypatch.setattr(LOGGER, "disabled", True)
    log = AddressLog(LOGGER, "guesses")
    for number in range(1_000):
        log.warn_about("guessed", str(number), {})
        assert len(log._counts) <= 10
