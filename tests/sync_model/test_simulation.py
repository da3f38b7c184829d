"""The law of the cluster, in random schedules: the same seeds each time, more where more are asked for."""

from __future__ import annotations

from collections import Counter

import pytest

from sync_model.scale import SEED, scaled
from sync_model.schedule import Schedule

SHARES = 4
SCHEDULES = 250
STRESS = (("joiners", "removals"), ("backups",), ("system",), ("joiners", "removals", "backups", "system"))


@pytest.mark.timeout(0)
@pytest.mark.parametrize("share", range(SHARES))
def test_nodes_that_know_the_same_show_the_same_and_nothing_is_lost(share: int) -> None:
    done: Counter[str] = Counter()
    count = scaled(SCHEDULES)
    for number in range(count):
        seed = (SEED - 1) * SHARES * count + share * count + number
        schedule = Schedule(seed)
        try:
            schedule.run()
        except Exception as error:
            error.add_note(f"schedule {seed}")
            raise
        done.update(schedule.stats)
    print(dict(done))
    # A model in which nothing of note happens proves nothing.
    for what in (
        *("equal sets compared", "broken pulls", "between pages", "partitions", "conflicts at the end"),
        *(
            "joins with data",
            "brought, parked",
            "removals",
            "rejoins",
            "put back",
            "put back, found by another",
        ),
        *("system writes", "resolutions", "move", "restore", "mkdir", "link", "touch"),
    ):
        assert done[what], what


@pytest.mark.timeout(0)
@pytest.mark.parametrize("stress", STRESS, ids="-".join)
def test_so_it_is_when_members_come_and_go_all_the_time(stress: tuple[str, ...]) -> None:
    for seed in range((SEED - 1) * scaled(50), SEED * scaled(50)):
        try:
            Schedule(seed, stress).run()
        except Exception as error:
            error.add_note(f"schedule {seed}, {stress}")
            raise


def test_a_schedule_is_the_same_each_time() -> None:
    first, second = Schedule(11), Schedule(11)
    first.run()
    second.run()
    assert first.stats == second.stats
    assert [node.tree.leaves for node in first.nodes] == [node.tree.leaves for node in second.nodes]
