"""Each fault in a rule is found: otherwise the law, or the schedules, would be too weak."""

from __future__ import annotations

import pytest

from svc.errors import SvcError
from sync_model.mutants import MUTANTS, Mutant, in_force
from sync_model.scale import SCALE
from sync_model.schedule import Schedule

MOST = 1_000
"""Schedules in a short run, behind the one that is known to find the fault."""


def _is_found(mutant: Mutant, schedules: int) -> bool:
    with in_force(mutant):
        for seed in (mutant.found_by, *range(schedules)):
            try:
                Schedule(seed, mutant.stress).run()
            except (AssertionError, SvcError, ValueError):
                return True
    return False


@pytest.mark.timeout(0)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_is_found(mutant: Mutant) -> None:
    """Where rules or schedules have changed, ``tox -e sync-simulation`` finds it by another schedule."""
    schedules = mutant.schedules if SCALE > 1 else min(mutant.schedules, MOST)
    assert _is_found(mutant, schedules), f"not found in {schedules} schedules"


def test_what_is_put_in_force_is_taken_back() -> None:
    for mutant in MUTANTS:
        with in_force(mutant):
            pass
    Schedule(3).run()
