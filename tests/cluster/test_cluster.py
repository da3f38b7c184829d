"""Whatever happens to the nodes of a cluster, in the end all show the same and nothing is lost.

``tox -e cluster`` runs many seeds with five nodes, a moved clock and a disk that is full at times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.history import Acknowledged, Commit, History, State
from cluster.network import Network
from cluster.scale import SCALE, SEED, scaled
from cluster.schedule import Schedule

SEEDS = range(SEED, SEED + scaled(1))


@pytest.mark.timeout(600 if SCALE <= 1 else 1_800)
@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_agree_and_nothing_is_lost(seed: int, tmp_path: Path, network: Network) -> None:
    how = {"nodes": 3, "steps": 6} if SCALE <= 1 else {"nodes": 5, "steps": 30}
    schedule = Schedule(seed, tmp_path, network, has_special=SCALE > 1, **how)
    try:
        schedule.run()
    finally:
        schedule.close()
    print("\n".join(schedule.log))
    print(dict(schedule.compared))
    assert schedule.compared["kept"]
    assert schedule.compared["put"]


def history_of(*changes: tuple[str, str | None, str | None]) -> History:
    """What one node has written, each change in a commit of its own."""
    made = History()
    made.note("n0", [Commit(number, f"{number}", False, [one]) for number, one in enumerate(changes)])
    return made


@pytest.mark.parametrize(
    ("changes", "files", "what"),
    [
        ([("/x", None, "1")], {}, "vanished"),
        ([("/x", None, "1"), ("/x", "1", "2")], {"/x": "1"}, "came back|vanished"),
        ([("/x", None, "1"), ("/x", "1", None)], {"/x": "1"}, "came back"),
    ],
)
def test_what_breaks_the_law_is_found(
    changes: list[tuple[str, str | None, str | None]], files: dict[str, str], what: str
) -> None:
    with pytest.raises(AssertionError, match=what):
        history_of(*changes).check(State("", files, {}, {}))


def test_what_keeps_the_law_is_counted() -> None:
    history = history_of(("/x", None, "1"), ("/x", "1", "2"), ("/y", None, "3"))
    history.acknowledged.append(Acknowledged("n0", "/y", "3"))
    assert history.check(State("", {"/x": "2"}, {"/y": {"3"}}, {})) == {"kept": 2, "replaced": 1}
    history.acknowledged.append(Acknowledged("n0", "/z", "4"))
    with pytest.raises(AssertionError, match="in no log"):
        history.check(State("", {"/x": "2"}, {"/y": {"3"}}, {}))
    # What a file that was put back has lost is asked of nobody.
    history.note("n0", [Commit(9, "9", False, [("/z", None, "4")])])
    history.lose("n0", 5)
    history.check(State("", {"/x": "2"}, {"/y": {"3"}}, {}))
