"""An answer that is not what its operation declares reaches nobody, and is the fault of its plugin."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from falcon.testing import TestClient

from svc_testing import DistributionFactory, load_with_testing_auth, serve_in_process

OPERATIONS = """
from msgspec import Struct
from svc.plugin import Created, operation, public

class Answer(Struct):
    text: str

class Other(Struct):
    text: str

GIVEN = {
    "well": Answer("x"), "plain": {"text": "x"}, "other": Other("x"), "nothing": None, "list": [Answer("x")],
    "made": Created(Answer("x"), True),
}

@operation("GET", "/odd/{what}", public)
def show(call, what: str) -> Answer:
    '''Shows.'''
    return GIVEN[what]

@operation("POST", "/odd/{what}", public, status=201)
def make(call, what: str) -> Created[Answer]:
    '''Makes.'''
    return Created(GIVEN[what], True)
"""
DESCRIPTOR = """
from svc.plugin import PluginDescriptor
PLUGIN = PluginDescriptor(
    "acme.odd", "1", "Odd answers", (1, 1), "acme_odd.plugin", operations=("acme_odd.operations",)
)
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    factory = DistributionFactory(tmp_path / "acme")
    factory.install(
        "acme-odd",
        modules={
            "acme_odd.plugin": "",
            "acme_odd.operations": OPERATIONS,
            "acme_odd.descriptor": DESCRIPTOR,
        },
        entry_points={"acme.odd": "acme_odd.descriptor:PLUGIN"},
    )
    with serve_in_process(tmp_path / "x.svcdb", load_with_testing_auth("acme.odd")) as (app, _, _):
        yield TestClient(app)
    factory.close()


def test_another_type_is_the_fault_of_the_plugin(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    for what in ("well", "plain"):
        assert client.simulate_get(f"/odd/{what}").json == {"text": "x"}
        assert client.simulate_post(f"/odd/{what}").status_code == 201
    with caplog.at_level(logging.ERROR):
        for what in ("other", "nothing", "list", "made"):
            answer = client.simulate_get(f"/odd/{what}")
            assert (answer.status_code, answer.json["code"]) == (500, "INTERNAL_ERROR")
        assert client.simulate_post("/odd/other").status_code == 500
    assert "The operation show answers Other, and declares Answer." in str(caplog.records[0].exc_info)
    assert all("'acme.odd'" in str(vars(record)) for record in caplog.records)
