"""Registers by themselves: who wins, what is kept, and that the order of joins does not matter."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from svc_sync.conflicts import Conflict, ConflictKind, conflicts_of, is_settled
from svc_sync.registers import (
    STABLE,
    Dot,
    Register,
    Rule,
    Version,
    is_known,
    join,
    resolve,
    restate,
    winner,
    write,
)
from svc_sync.tree import FULL
from svc_sync.values import Directory, Document, Reference, alike, rank

from svc.plugin import Entry, EntryKind, hash_content

ANN, BOB, EVE = 11, 22, 33


def file(text, ms=1):
    return Entry(EntryKind.FILE, hash_content(text.encode()), len(text), ms, ms, "text/plain")


ONE, TWO, THREE = file("one"), file("two"), file("three")


def test_content_wins_over_an_empty_directory_and_that_over_a_deletion():
    values = {ANN: None, BOB: Directory(5), EVE: ONE}
    register = Register(
        dict.fromkeys(values, 9),
        {Dot(9 - writer // 10, writer): Version(value) for writer, value in values.items()},
    )
    assert winner(register)[1].value == ONE
    assert [rank(values[writer]) for writer in (ANN, BOB, EVE)] == [0, 1, 2]


def test_of_two_writes_that_do_not_know_of_each_other_the_later_wins_and_the_other_is_a_conflict():
    one, two = write(None, Dot(5, ANN), ONE, None), write(None, Dot(6, BOB), TWO, None)
    both = join(one, two, {})
    assert winner(both) == (Dot(6, BOB), Version(TWO, fresh=True))
    assert conflicts_of(both, TWO) == [Conflict(ConflictKind.ADD_ADD, Dot(5, ANN), ONE, Dot(6, BOB), TWO)]


def test_what_was_seen_when_something_was_written_is_replaced():
    one = write(None, Dot(5, ANN), ONE, None)
    two = write(one, Dot(9, BOB), TWO, ONE)
    assert join(one, two, {}) == join(two, one, {}) == two
    assert two.versions == {Dot(9, BOB): Version(TWO)}
    assert conflicts_of(two, TWO) == []


def test_a_loser_stays_when_somebody_writes_past_it_and_never_wins_again():
    both = join(write(None, Dot(5, ANN), ONE, None), write(None, Dot(6, BOB), TWO, None), {})
    past = write(both, Dot(7, EVE), THREE, TWO)
    assert past.versions == {
        Dot(5, ANN): Version(ONE, parked=True, fresh=True),
        Dot(7, EVE): Version(THREE),
    }
    assert winner(write(past, Dot(8, EVE), None, THREE))[1].value is None
    assert [row.loser for row in conflicts_of(past, THREE)] == [ONE]


def test_a_change_beats_a_deletion_and_the_deletion_is_listed():
    base = write(None, Dot(1, ANN), ONE, None)
    both = join(write(base, Dot(9, ANN), None, ONE), write(base, Dot(5, BOB), TWO, ONE), {})
    assert winner(both)[1].value == TWO
    assert [(row.kind, row.dot, row.loser) for row in conflicts_of(both, TWO)] == [
        (ConflictKind.MODIFY_DELETE, Dot(9, ANN), None)
    ]


def test_a_choice_leaves_nothing_else():
    both = join(write(None, Dot(5, ANN), ONE, None), write(None, Dot(6, BOB), TWO, None), {})
    chosen = resolve(both, Dot(7, EVE), ONE)
    assert chosen.versions == {Dot(7, EVE): Version(ONE)}
    assert join(both, chosen, {}) == join(chosen, both, {}) == chosen


def test_equal_content_is_no_conflict_and_goes_when_all_know():
    both = join(write(None, Dot(5, ANN), ONE, None), write(None, Dot(6, BOB), file("one", 7), None), {})
    shown = winner(both)[1].value
    assert conflicts_of(both, shown) == []
    assert not is_settled(both, {ANN: 5, BOB: 5}, shown)
    assert is_settled(both, {ANN: 5, BOB: 6}, shown)


def test_what_stays_until_somebody_acts():
    horizon = {ANN: 9, BOB: 9}
    assert not is_settled(write(None, Dot(5, ANN), Directory(4), None), horizon, Directory(4))
    assert not is_settled(write(None, Dot(5, ANN), ONE, None), horizon, FULL)
    both = join(write(None, Dot(5, ANN), ONE, None), write(None, Dot(6, BOB), TWO, None), {})
    assert not is_settled(both, horizon, TWO)
    assert is_settled(write(None, Dot(5, ANN), ONE, None), horizon, ONE)
    assert is_settled(write(None, Dot(5, ANN), None, ONE), horizon, FULL)


def test_below_the_horizon_a_register_without_a_write_has_replaced_it():
    stale = write(None, Dot(5, ANN), ONE, None)
    pruned_then_written = write(None, Dot(9, BOB), TWO, ONE)
    assert set(join(stale, pruned_then_written, {}).versions) == {Dot(5, ANN), Dot(9, BOB)}
    assert join(stale, pruned_then_written, {ANN: 5}) == join(pruned_then_written, stale, {ANN: 5})
    assert set(join(stale, pruned_then_written, {ANN: 5}).versions) == {Dot(9, BOB)}


def test_a_stable_value_stands_for_the_write_that_was_forgotten():
    parked = Register({EVE: 8}, {**restate(ONE).versions, Dot(8, EVE): Version(TWO, parked=True)})
    named = write(None, Dot(5, ANN), ONE, None)
    for joined in (join(parked, named, {ANN: 5}), join(named, parked, {ANN: 5})):
        assert joined.versions == parked.versions
    replaced = write(named, Dot(9, BOB), THREE, ONE)
    for joined in (join(parked, replaced, {ANN: 5}), join(replaced, parked, {ANN: 5})):
        assert set(joined.versions) == {Dot(8, EVE), Dot(9, BOB)}
    assert join(parked, restate(ONE), {}).versions == parked.versions


def test_the_time_of_a_stable_file_is_its_own_and_any_other_stable_value_is_the_earliest():
    later, earlier = Dot(3 << 16, ANN), Dot(1 << 16, ANN)
    beside = {ANN: 3 << 16}
    stable = Version(file("x", 2))
    assert winner(Register(beside, {STABLE: stable, later: Version(ONE)}))[0] == later
    assert winner(Register(beside, {STABLE: stable, earlier: Version(ONE)}))[0] == STABLE
    deleted = Register(beside, {STABLE: stable, later: Version(None)})
    assert winner(deleted) == (later, Version(None))
    assert [row.loser for row in conflicts_of(deleted, None)] == [stable.value]
    assert winner(Register(beside, {STABLE: stable, earlier: Version(None)}))[0] == STABLE
    kept = Register(beside, {STABLE: Version(Document(b"a")), later: Version(Document(b"b"))})
    assert winner(kept, Rule.LAST_WRITER)[0] == later


@pytest.mark.parametrize(
    ("rule", "winning"), [(Rule.KEEP_LOSERS, b"new"), (Rule.LAST_WRITER, b"new"), (Rule.REMOVAL_WINS, None)]
)
def test_system_data_has_its_own_rules(rule, winning):
    before = write(None, Dot(1, ANN), Document(b"old"), None, rule)
    removed = write(before, Dot(5, ANN), None, Document(b"old"), rule)
    changed = write(before, Dot(9, BOB), Document(b"new"), Document(b"old"), rule)
    both = join(removed, changed, {})
    value = winner(both, rule)[1].value
    assert (value.data if value else None) == winning
    assert is_settled(both, {ANN: 9, BOB: 9}, value, rule) == (rule is not Rule.KEEP_LOSERS)
    assert len(write(both, Dot(12, EVE), Document(b"z"), value, rule).versions) == 1


def test_only_content_is_alike():
    assert alike(ONE, file("one", 99))
    assert not alike(ONE, TWO)
    assert alike(Reference(bytes(32)), Reference(bytes(32)))
    assert not alike(None, None)
    assert not alike(Directory(1), Directory(1))


# -- the laws, over registers that members can really have

VALUES = st.sampled_from([ONE, TWO, file("one", 2), None, Directory(1)])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "join", "resolve"]),
        st.integers(0, 2),
        st.integers(0, 2),
        VALUES,
    ),
    max_size=14,
)


@dataclass
class Members:
    """Three members that write a path and tell each other."""

    registers: list = field(default_factory=lambda: [None, None, None])
    vts: list = field(default_factory=lambda: [0, 0, 0])

    def do(self, kind, who, other, value):
        register = self.registers[who]
        if kind == "join":
            self.registers[who] = join(register, self.registers[other], {})
            self.vts[who] = max(self.vts[who], self.vts[other])
            return
        self.vts[who] += 1
        dot = Dot(self.vts[who], who + 1)
        if kind == "write":
            shown = winner(register)[1].value if register else None
            self.registers[who] = write(register, dot, value, shown)
        elif register is not None:
            self.registers[who] = resolve(register, dot, value)


@given(STEPS)
def test_joins_are_commutative_associative_and_idempotent(steps):
    members = Members()
    for step in steps:
        members.do(*step)
    a, b, c = members.registers
    assert join(a, b, {}) == join(b, a, {})
    assert join(join(a, b, {}), c, {}) == join(a, join(b, c, {}), {})
    assert join(a, a, {}) == a
    assert join(join(a, b, {}), b, {}) == join(a, b, {})


@given(STEPS)
def test_whatever_was_written_one_version_counts_and_all_is_seen(steps):
    members = Members()
    for step in steps:
        members.do(*step)
        for register in filter(None, members.registers):
            standing = [dot.writer for dot, one in register.versions.items() if not one.parked]
            assert standing
            assert len(set(standing)) == len(standing)
            assert all(register.context[dot.writer] >= dot.vt for dot in register.versions)
            assert all(rank(one.value) == 2 for one in register.versions.values() if one.parked)
            assert is_known(register, register.context)
