"""Whatever was merged with whatever: a merge takes the newest of each side, or says that it cannot."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.errors import Conflict
from svc.plugin import Database
from svc_versions.forks import abandon_fork, create_fork, find_fork, list_forks, promote_fork
from svc_versions.merging import merge_versions
from svc_versions.restoring import restore_snapshot
from svc_versions.snapshots import create_snapshot

from .conftest import contents, write  # noqa: TID252

PLACES = ("HEAD", "f", "g", "h")
View = dict[str, int]
"""What a place has seen of each file: the number of its last write, 0 before the first."""

STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PLACES), st.just("")),
    st.tuples(st.just("merge"), st.sampled_from(PLACES), st.sampled_from(PLACES)),
    st.tuples(st.just("promote"), st.sampled_from(PLACES[1:]), st.just("")),
    st.tuples(st.just("again"), st.sampled_from(PLACES[1:]), st.sampled_from(PLACES)),
)


class Places:
    """HEAD and three forks; each place writes a file of its own, whose content counts the writes."""

    def __init__(self, database: Database) -> None:
        self.database = database
        write(database, {f"/{place}": "0" for place in PLACES})
        self.views: dict[str, View] = {place: dict.fromkeys(PLACES, 0) for place in PLACES}
        self.count = 0
        for place in PLACES[1:]:
            create_fork(database, place)

    def step(self, what: str, place: str, other: str) -> str:
        """Does one step; returns what became of it."""
        if what == "write":
            self.count += 1
            write(self.database, {f"/{place}": str(self.count)}, None if place == "HEAD" else place)
            self.views[place][place] = self.count
        elif what == "again":
            abandon_fork(self.database, place)
            create_fork(self.database, place, base=None if other in ("HEAD", place) else f"forks/{other}")
            self.views[place] = dict(self.views["HEAD" if other == place else other])
        elif what == "promote":
            with suppress(Conflict):
                promote_fork(self.database, place)
                self.views["HEAD"] = dict(self.views[place])
        elif place != other:
            return self.merge(place, other)
        return what

    def merge(self, source: str, target: str) -> str:
        """Merges; what comes out is the newest of either side, wherever nothing is in the way."""
        before = self.seen(target)
        try:
            merge_versions(self.database, source, target)
        except Conflict:
            assert self.seen(target) == before
            return "conflict"
        mine, other = self.views[target], self.views[source]
        self.views[target] = {place: max(mine[place], other[place]) for place in PLACES}
        return "merged"

    def seen(self, place: str) -> View:
        """What a place really holds."""
        found = contents(self.database, None if place == "HEAD" else place)
        return {path[1:]: int(text) for path, text in found.items()}


@settings(max_examples=40)
@given(steps=st.lists(STEPS, max_size=14))
def test_no_merge_ever_takes_an_older_state_for_a_newer_one(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    with Database(tmp_path_factory.mktemp("bases") / "b.svcdb") as database:
        places = Places(database)
        for step in steps:
            places.step(*step)
            for place in PLACES:
                assert places.seen(place) == places.views[place], (step, place)
        assert len(list_forks(database)) == 3


@pytest.mark.parametrize("seed", range(8))
def test_long_lives_with_many_crossings_are_no_exception(database: Database, seed: int) -> None:
    chance = random.Random(seed)
    places = Places(database)
    outcomes: Counter[str] = Counter()
    for _ in range(30):
        what = chance.choices(["write", "merge", "promote", "again"], [4, 4, 1, 2])[0]
        place = chance.choice(PLACES if what in ("write", "merge") else PLACES[1:])
        outcomes[places.step(what, place, chance.choice(PLACES))] += 1
        assert all(places.seen(one) == places.views[one] for one in PLACES)
    assert outcomes["merged"] > outcomes["conflict"]


def test_the_usual_ways_of_working_meet_no_conflict(database: Database) -> None:
    places = Places(database)
    outcomes: Counter[str] = Counter()
    for fork in PLACES[1:]:
        for _ in range(3):
            places.step("write", "HEAD", "")
            places.step("write", fork, "")
            outcomes[places.step("merge", "HEAD", fork)] += 1
            outcomes[places.step("merge", fork, "HEAD")] += 1
    for source, target in (("f", "g"), ("g", "h"), ("h", "f"), ("f", "HEAD")):
        places.step("write", source, "")
        outcomes[places.step("merge", source, target)] += 1
    assert outcomes == {"merged": 22}
    assert all(places.seen(place) == places.views[place] for place in PLACES)


@pytest.mark.parametrize("way", ["fork", "hash", "abandoned", "snapshot"])
def test_a_fork_of_a_fork_brings_what_it_began_with(database: Database, way: str) -> None:
    write(database, {"/a": "1", "/b": "1"})
    create_fork(database, "f")
    write(database, {"/a": "f"}, "f")
    state = find_fork(database, "f")
    create_snapshot(database, "of-f", root=state.root, base_sequence=state.base_sequence)
    if way == "abandoned":
        abandon_fork(database, "f")
    base = {"fork": "forks/f", "snapshot": "of-f"}.get(way, state.root.hex())
    assert create_fork(database, "g", base=base).root == state.root
    write(database, {"/b": "g"}, "g")
    write(database, {"/c": "head"})
    merge_versions(database, "g")
    assert contents(database) == {"/a": "f", "/b": "g", "/c": "head"}


def test_a_fork_of_a_fork_merges_with_it(database: Database) -> None:
    write(database, {"/a": "1"})
    create_fork(database, "f")
    write(database, {"/a": "2"}, "f")
    create_fork(database, "g", base="forks/f")
    write(database, {"/a": "3"}, "g")
    write(database, {"/b": "f"}, "f")
    merge_versions(database, "g", "f")
    assert contents(database, "f") == {"/a": "3", "/b": "f"}


def test_work_that_a_restore_left_behind_comes_back_by_its_safety_snapshot(database: Database) -> None:
    write(database, {"/a": "1", "/b": "1"})
    create_snapshot(database, "start")
    for number in range(3):
        write(database, {f"/left-{number}": "x"})
        safety = restore_snapshot(database, "start").auto_snapshot
        assert safety is not None
        write(database, {f"/kept-{number}": "x"})
        create_snapshot(database, "start-" + str(number))
        merge_versions(database, safety)
        assert {f"/left-{number}", f"/kept-{number}"} <= set(contents(database))
