"""The machine, in this process and against real servers that are killed."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from versions_model.machine import Versions
from versions_model.places import Behind, Within
from versions_model.scale import scaled


class InThisProcess(Versions):
    open_here = open_there = Within


class BehindAServer(Versions):
    open_here = Behind
    open_there = Within


@pytest.mark.timeout(0)
def test_the_database_does_what_the_model_does() -> None:
    run_state_machine_as_test(
        InThisProcess, settings=settings(max_examples=scaled(50), stateful_step_count=40)
    )


@pytest.mark.timeout(0)
def test_a_server_that_is_killed_does_what_the_model_does() -> None:
    run_state_machine_as_test(
        BehindAServer, settings=settings(max_examples=scaled(4), stateful_step_count=30)
    )
