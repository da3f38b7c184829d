"""The log of deliveries: bounded, read by any process, and never worth a failure."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from svc_events_webhook.configuration import WebhookConfiguration
from svc_events_webhook.deliveries import DeliveryLog
from svc_events_webhook.models import Delivery

from svc.errors import InvalidInput


def delivery(number: int, at: int = 1 << 42) -> Delivery:
    return Delivery(event_id=str(number), event_type="t", at=at, took_ms=1, status=200, error=None, answer="")


def test_the_newest_come_first_in_pages(tmp_path: Path) -> None:
    writing, reading = (DeliveryLog(tmp_path, WebhookConfiguration()) for _ in range(2))
    assert reading.page("a", 10, None).deliveries == []
    for number in range(25):
        writing.add("a", delivery(number), b"\xffanswer")
        writing.add("b", delivery(number), b"")
    found, after = [], None
    while True:
        page = reading.page("a", 10, after)
        found += page.deliveries
        if not page.has_more:
            break
        after = page.next_cursor
    assert [one.event_id for one in found] == [str(number) for number in reversed(range(25))]
    assert found[0].answer == "\ufffdanswer"
    writing.forget("a")
    assert reading.page("a", 10, None).deliveries == []
    assert len(reading.page("b", 100, None).deliveries) == 25
    with pytest.raises(InvalidInput):
        reading.page("a", 10, "x")


def test_it_is_bounded(tmp_path: Path) -> None:
    log = DeliveryLog(tmp_path, WebhookConfiguration(deliveries_kept=10))
    log.add("old", delivery(0, at=1_000), b"")
    for number in range(1_001):
        log.add("a", delivery(number), b"")
    assert len(log.page("a", 1000, None).deliveries) < 520
    assert log.page("old", 1000, None).deliveries == []


def test_one_that_is_damaged_begins_anew(tmp_path: Path) -> None:
    log = DeliveryLog(tmp_path, WebhookConfiguration())
    log.add("a", delivery(1), b"")
    log.close()
    (tmp_path / "webhooks" / "deliveries.sqlite").write_bytes(b"rot" * 5_000)
    assert log.page("a", 10, None).deliveries == []
    log.add("a", delivery(2), b"")
    assert [one.event_id for one in log.page("a", 10, None).deliveries] == ["2"]


def test_many_threads_write(tmp_path: Path) -> None:
    log = DeliveryLog(tmp_path, WebhookConfiguration())
    threads = [
        threading.Thread(target=lambda: [log.add("a", delivery(number), b"") for number in range(50)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log.page("a", 1000, None).deliveries) == 400


def test_where_nothing_can_be_written_nothing_fails() -> None:
    log = DeliveryLog(Path("/proc/none"), WebhookConfiguration())
    log.add("a", delivery(1), b"")
    assert log.page("a", 10, None).deliveries == []


def test_one_that_another_holds_or_that_is_gone_loses_nothing_else(tmp_path: Path) -> None:
    log = DeliveryLog(tmp_path, WebhookConfiguration())
    log.add("a", delivery(1), b"")
    path = tmp_path / "webhooks" / "deliveries.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        log.add("a", delivery(2), b"")
        other.execute("ROLLBACK")
    assert [one.event_id for one in log.page("a", 10, None).deliveries] == ["1"]
    shutil.rmtree(path.parent)
    log.add("a", delivery(3), b"")
    assert [one.event_id for one in log.page("a", 10, None).deliveries] == ["3"]
