"""The page of metrics keeps the contract of the portal; its curves are of what the operation answers."""

from __future__ import annotations

from typing import Any

import pytest
from falcon.testing import TestClient
from svc_metrics.portal.curves import HEIGHT, WIDTH, curve_of
from svc_metrics.portal.pages import MetricsCard, MetricsPage
from svc_metrics.rates import Sample, SamplingJob, _file_of, add_sample
from svc_portal.testing import PortalPageContract, StateCardContract

from svc.plugin import Database


class TestMetricsPage(PortalPageContract):
    plugin_id = "metrics"
    urls = ("metrics",)

    def fill(self, database: Database) -> None:
        self.database = database

    @pytest.fixture
    def extension(self) -> MetricsPage:
        return MetricsPage()

    def test_rates_that_are_not_known_are_said_to_be(self, served: tuple[TestClient, Any]) -> None:
        text = served[0].simulate_get("/portal/metrics").text
        assert "<svg" not in text
        assert text.count("Not known yet") == 4

    def test_rates_that_are_known_are_drawn(self, served: tuple[TestClient, Any]) -> None:
        SamplingJob().run(_Context(self.database))
        file = _file_of(self.database.state_directory)
        said = file.read()
        assert said is not None
        last = said[0].samples[-1]
        file.beat(add_sample(said[0], Sample(last.at + 10, last.writes + 25, last.reads, 0.0, 2048.0 * 10)))
        text = served[0].simulate_get("/portal/metrics").text
        assert text.count("<svg") == 4
        assert 'aria-label="Commits of writers: 2.5/s over the last 15 minutes' in text
        assert "<dt>Last minute</dt><dd>2.0 KiB/s</dd>" in text


class TestMetricsCard(StateCardContract):
    plugin_id = "metrics"

    @pytest.fixture
    def extension(self) -> MetricsCard:
        return MetricsCard()


class _Context:
    def __init__(self, database: Database) -> None:
        self.database = database


def test_a_curve_stays_within_its_picture_and_under_its_peak() -> None:
    curve = curve_of({"1m": 4.0, "5m": 0.0, "15m": 2.0, "peak_1m": 8.0})
    assert curve is not None
    assert [one.minutes for one in curve.points] == [15, 5, 1]
    assert all(0 < one.x < WIDTH and 0 < one.y < HEIGHT for one in curve.points)
    assert curve.peak_y == min([curve.peak_y, *(one.y for one in curve.points)])
    assert curve.points[1].y == max(one.y for one in curve.points)


def test_a_curve_of_nothing_is_flat_and_one_of_what_is_not_known_is_none() -> None:
    flat = curve_of({"1m": 0.0, "5m": 0.0, "15m": 0.0})
    assert flat is not None
    assert len({one.y for one in flat.points}) == 1
    assert curve_of({"1m": None, "5m": None, "15m": None}) is None
