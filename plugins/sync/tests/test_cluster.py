"""Members, rows and horizons; pages; clocks; scopes; who joins and who comes back."""

from __future__ import annotations

import pytest
from svc_sync.clock import MAXIMUM_AHEAD_MS, MAXIMUM_VT, check_received, milliseconds_of, next_vt, vt_of
from svc_sync.cluster import Cluster, Head, Horizons, Member, covers_row, learn, row_after_pull
from svc_sync.joining import bring, carry_over, may_return_through, row_of_returned, welcome
from svc_sync.pages import Page, check_register, is_current, select_page
from svc_sync.references import forget_loser, shown_references
from svc_sync.registers import RESTATED_VT, STABLE, Dot, Register, Rule, Version, join, winner, write
from svc_sync.scopes import REFERENCES, SYSTEM, Scope, is_of_user
from svc_sync.tree import FULL
from svc_sync.values import Directory, Document, Reference

from svc.errors import InvalidInput, InvalidPath
from svc.plugin import Entry, EntryKind, hash_content

ANN, BOB, EVE = Member(1, 10), Member(2, 20), Member(3, 30, ("/a/**",))
CLUSTER = (
    Cluster()
    .with_member(ANN, {1: 9, 2: 4})
    .with_member(BOB, {1: 5, 2: 7})
    .with_member(EVE, {1: 1, 2: 1, 3: 2})
)


def file(text):
    return Entry(EntryKind.FILE, hash_content(text.encode()), len(text), 1, 1, "text/plain")


def by(writer, vt, value):
    return write(None, Dot(vt, writer), value, None)


def test_the_clock_follows_the_wall_and_what_was_seen_and_never_goes_back():
    assert next_vt(1_000, 0) == vt_of(1_000)
    assert next_vt(1_000, vt_of(1_000)) == vt_of(1_000) + 1
    assert next_vt(1_000, vt_of(2_000)) == vt_of(2_000) + 1
    assert milliseconds_of(next_vt(1_000, 0)) == 1_000


def test_a_time_more_than_a_year_ahead_is_refused():
    check_received(vt_of(5_000 + MAXIMUM_AHEAD_MS), 5_000)
    for vt in (vt_of(5_001 + MAXIMUM_AHEAD_MS), MAXIMUM_VT + 1, -1):
        with pytest.raises(InvalidInput, match="year ahead"):
            check_received(vt, 5_000)


def test_what_all_members_that_take_a_path_know_lies_below_its_horizon():
    horizons = Horizons(CLUSTER)
    assert horizons.of(("b",)) == {1: 5, 2: 4}
    assert horizons.of(("a", "x")) == {1: 1, 2: 1}
    assert horizons.of((*SYSTEM, "a")) == {1: 5, 2: 4}
    assert CLUSTER.floor() == {1: 5, 2: 4}
    assert Horizons(CLUSTER.without([3])).of(("a",)) == {1: 5, 2: 4}
    assert Horizons(Cluster()).of(("a",)) == {}


def test_a_removal_is_for_ever_and_rows_only_grow():
    told = learn(CLUSTER.without([2]), CLUSTER.with_row(1, {1: 3, 2: 8}))
    assert set(told.members) == {1, 3}
    assert told.removed == {2}
    assert told.rows == {1: {1: 9, 2: 8}, 3: {1: 1, 2: 1, 3: 2}}


def test_a_member_that_comes_in_late_is_removed():
    late = CLUSTER.with_member(Member(4, 40), {1: 5, 2: 3})
    in_time = CLUSTER.with_member(Member(4, 40), {1: 5, 2: 4})
    assert learn(CLUSTER, late).removed == {4}
    assert 4 in learn(CLUSTER, in_time).members


def test_the_latest_commit_of_a_writer_is_kept():
    old, new = CLUSTER.with_row(1, {}, Head(5, 1, b"a")), CLUSTER.with_row(1, {}, Head(6, 2, b"b"))
    assert learn(old, new).heads == learn(new, old).heads == {1: Head(6, 2, b"b")}


def test_who_takes_less_vouches_for_its_own_writes():
    whole, part = Scope(None), Scope(("/a/**",))
    assert row_after_pull({1: 1}, whole, BOB, whole, {1: 5, 2: 6}) == {1: 5, 2: 6}
    assert row_after_pull({1: 1}, part, BOB, whole, {1: 5}) == {1: 5}
    assert row_after_pull({1: 1}, part, EVE, part, {1: 5}) == {1: 5}
    returned = Member(3, 30, ("/a/**",), former=(7,))
    assert row_after_pull({1: 1}, whole, returned, part, {1: 5, 3: 8, 7: 6}) == {1: 1, 3: 8, 7: 6}


def test_scopes_are_globs_over_the_user_tree():
    part = Scope(("/a/*/raw/**", "/notes"))
    taken = [("a", "x", "raw"), ("a", "x", "raw", "y"), ("notes",)]
    assert [part.takes(path) for path in (*taken, ("a", "x"))] == [True, True, True, False]
    assert not part.takes((*SYSTEM, "users"))
    assert Scope().takes((*REFERENCES, "forks", "f"))
    assert not is_of_user(SYSTEM)
    assert is_of_user(())
    assert not part.holds(Scope())
    with pytest.raises(InvalidPath):
        Scope(("/a/../b",))


REGISTERS = {
    ("a",): by(1, 5, file("a")),
    ("a", "b"): by(2, 6, file("b")),
    ("a", "c"): by(1, 9, file("c")),
    ("d",): by(2, 2, None),
}


def page(known, **options):
    options = {"takes": lambda path: True, **options}
    found, last = select_page(sorted(REGISTERS), REGISTERS.get, known, **options)
    return [path for path, _ in found], last


def test_a_page_has_what_the_asker_does_not_know_and_what_stands_above_it():
    assert page({1: 9, 2: 6}) == ([], True)
    assert page({1: 9, 2: 2}) == ([("a",), ("a", "b")], True)
    assert page({1: 5, 2: 6}, limit=1) == ([("a",), ("a", "c")], True)
    assert page({}, limit=1) == ([("a",)], False)
    assert page({}, limit=1, after=("a",)) == ([("a",), ("a", "b")], False)
    assert page({}, after=("a", "b")) == ([("a",), ("a", "c"), ("d",)], True)
    assert page({}, takes=lambda path: path[0] == "d") == ([("d",)], True)


def test_a_page_ends_at_a_number_of_bytes():
    large = {("k", str(n)): by(1, n + 1, Document(bytes(60_000))) for n in range(40)}
    found, last = select_page(sorted(large), large.get, {}, lambda path: True)
    assert not last
    assert 10 < len(found) < 20


def test_a_page_that_was_under_way_too_long_is_thrown_away():
    sent = Page([(("b",), by(2, 6, None))], True, {1: 5, 2: 7}, CLUSTER)
    assert is_current(sent, 2, CLUSTER)
    moved_on = CLUSTER.with_row(1, {2: 9}).with_row(2, {2: 9})
    assert not is_current(sent, 2, moved_on)
    assert not is_current(sent, 2, CLUSTER.without([2]))


def test_what_no_node_writes_is_refused():
    now_ms = 1_000
    good = by(1, vt_of(now_ms), file("a"))
    check_register(good, now_ms)
    with pytest.raises(InvalidInput, match="year ahead"):
        check_register(by(1, vt_of(now_ms + 2 * MAXIMUM_AHEAD_MS), None), now_ms)
    with pytest.raises(InvalidInput, match="two versions of one writer"):
        check_register(Register({1: 5}, {Dot(4, 1): Version(None), Dot(5, 1): Version(None)}), now_ms)
    with pytest.raises(InvalidInput, match="no version"):
        check_register(Register({1: 5}, {Dot(4, 1): Version(file("a"), parked=True)}), now_ms)
    with pytest.raises(InvalidInput, match="not seen"):
        check_register(Register({1: 3}, {Dot(4, 1): Version(None)}), now_ms)


def test_a_new_member_is_known_before_it_has_its_copy():
    told = welcome(CLUSTER, {1: 9, 2: 4}, Member(5, 50))
    assert told.rows[5] == {1: 9, 2: 4}


def test_what_the_cluster_lacks_is_written_and_what_differs_is_parked():
    dot = Dot(3, 9)
    lacking = bring(None, None, file("new"), dot, blocked=False)
    assert lacking.versions == {dot: Version(file("new"), fresh=True)}
    differs = bring(None, file("theirs"), file("mine"), dot, blocked=False)
    assert differs.versions == {STABLE: Version(file("theirs")), dot: Version(file("mine"), parked=True)}
    below_a_file = bring(None, None, file("mine"), dot, blocked=True)
    assert below_a_file.versions == {STABLE: Version(None), dot: Version(file("mine"), parked=True)}
    assert bring(None, FULL, file("mine"), dot, blocked=False).versions[dot].parked
    assert bring(None, file("same"), file("same"), dot, blocked=False) is None
    assert bring(None, None, Directory(5), dot, blocked=False).versions == {
        dot: Version(Directory(5), fresh=True)
    }
    assert bring(None, FULL, Directory(5), dot, blocked=False) is None


def returned(theirs, shown, mine, **options):
    options = {"writer": 70, "known": {}, "seen": {}, "forgotten": {1: 5}, **options}
    return carry_over(theirs, shown, mine, **options)


def test_who_returns_brings_what_nobody_had_and_no_more():
    mine = by(7, 8, file("mine"))
    assert returned(None, None, mine) == Register({7: 8, 70: RESTATED_VT}, mine.versions)
    assert returned(None, None, mine, known={7: 8}) is None
    replaced = write(mine, Dot(9, 1), file("after"), file("mine"))
    assert returned(replaced, file("after"), mine) is None
    beside = returned(None, file("stable"), mine)
    assert set(beside.versions) == {Dot(RESTATED_VT, 70), Dot(8, 7)}
    assert beside.context == {7: 8, 70: RESTATED_VT}


@pytest.mark.parametrize(
    "evidence", [{"seen": {1: 5}}, {"stood": [file("stable")]}], ids=["all is known", "it stood here"]
)
def test_who_returns_has_replaced_what_it_saw(evidence):
    mine = by(7, 8, file("mine"))
    assert set(returned(None, file("stable"), mine, **evidence).versions) == {Dot(8, 7)}


def test_of_system_data_nobody_can_place_the_clusters_counts_unless_it_was_removed():
    stands, restated = Document(b"theirs"), Dot(RESTATED_VT, 70)
    for rule in (Rule.LAST_WRITER, Rule.REMOVAL_WINS):
        made = returned(None, stands, by(7, 8, Document(b"mine")), rule=rule)
        assert made.versions[Dot(8, 7)].parked
        assert winner(made, rule) == (restated, Version(stands))
    removed = by(7, 8, None)
    assert winner(returned(None, stands, removed, rule=Rule.LAST_WRITER), Rule.LAST_WRITER)[0] == restated
    made = returned(None, stands, removed, rule=Rule.REMOVAL_WINS)
    assert winner(made, Rule.REMOVAL_WINS)[1].value is None


def test_who_returns_does_not_bring_back_a_key_that_was_removed_meanwhile():
    old = Document(b"old")
    changed = write(by(1, 3, old), Dot(8, 7), Document(b"changed"), old, Rule.REMOVAL_WINS)
    made = returned(None, None, changed, rule=Rule.REMOVAL_WINS)
    assert winner(made, Rule.REMOVAL_WINS)[1].value is None
    # It was removed here too before it was made anew, or it is a new one.
    known = returned(None, None, changed, seen={1: 5}, rule=Rule.REMOVAL_WINS)
    new = returned(None, None, by(7, 8, Document(b"new")), rule=Rule.REMOVAL_WINS)
    for one in (known, new):
        assert winner(one, Rule.REMOVAL_WINS)[1].value is not None


def test_writes_of_a_log_that_was_put_back_are_written_again():
    mine = by(7, 8, file("mine"))
    theirs = by(7, 9, file("lost"))
    made = returned(theirs, file("lost"), mine, known={7: 9}, seen={7: 8}, distrusted={7})
    assert set(made.versions) == {Dot(9, 7), Dot(8, 70)}
    assert row_of_returned({1: 3}, {7: 8, 1: 4}, (7,)) == {1: 4}


def test_nobody_returns_through_a_member_that_lacks_what_is_forgotten_here():
    assert may_return_through(CLUSTER, {1: 5, 2: 4})
    assert not may_return_through(CLUSTER, {1: 5, 2: 3})
    assert covers_row({1: 1}, {})


def test_a_fork_that_lost_stands_under_the_name_of_its_node_until_somebody_deletes_it():
    one, two = (Reference(bytes([n]) * 32) for n in (1, 2))
    both = join(by(1, 5, one), by(2, 6, two), {})
    shown = shown_references([("old", bytes(32))], [("f", both)], lambda writer: f"n{writer}")
    assert {name: root for name, (root, _, _) in shown.items()} == {
        "old": bytes(32), "f": two.root, "f~n1": one.root,
    }  # fmt: skip
    taken = shown_references([("f~n1", bytes(32))], [("f", both)], lambda writer: f"n{writer}")
    assert sorted(taken) == ["f", "f~n1", "f~n1~5-1"]
    gone = forget_loser(both, Dot(5, 1), Dot(9, 3))
    assert gone.versions == {Dot(9, 3): Version(two)}
    assert join(both, gone, {}) == gone
