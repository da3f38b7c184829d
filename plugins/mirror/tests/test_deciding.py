"""What is to be done at a path: the whole table, and what holds of every row."""

from __future__ import annotations

from itertools import product

import pytest
from svc_mirror.client.deciding import Action, decide
from svc_mirror.client.links import target_here, target_there
from svc_mirror.client.values import Kind, Standing

FILE_A: Standing = (Kind.FILE, "a")
FILE_B: Standing = (Kind.FILE, "b")
FILE_C: Standing = (Kind.FILE, "c")
LINK: Standing = (Kind.LINK, "/a")
DIRECTORY: Standing = (Kind.DIRECTORY, "")
ALL = (None, FILE_A, FILE_B, FILE_C, LINK, DIRECTORY)


def done(here: Standing, there: Standing, actions: list[Action]) -> tuple[Standing, Standing, list[Standing]]:
    """Does what was decided to values: both sides, and what was set aside."""
    aside: list[Standing] = []
    for action in actions:
        if action is Action.DELETE_THERE:
            there = None
        elif action is Action.DELETE_HERE:
            here = None
        elif action is Action.SET_ASIDE:
            aside.append(here)
            here = None
        elif action is Action.FETCH:
            assert here is None or here[0] is there[0]  # type: ignore[index]
            here = there
        elif action is Action.STORE:
            assert there is None or there[0] is here[0]  # type: ignore[index]
            there = here
    return here, there, aside


@pytest.mark.parametrize(("here", "base", "there"), list(product(ALL, repeat=3)))
def test_both_sides_become_alike_and_nothing_new_is_lost(
    here: Standing, base: Standing, there: Standing
) -> None:
    actions = decide(here, base, there)
    now, also, aside = done(here, there, actions)
    assert now == also
    for new in {here, there} - {base, None}:
        assert new == now or new in aside, actions


@pytest.mark.parametrize(("here", "base", "there"), list(product(ALL, repeat=3)))
def test_down_only_sends_nothing_and_loses_nothing(here: Standing, base: Standing, there: Standing) -> None:
    actions = decide(here, base, there, down_only=True)
    assert not {Action.STORE, Action.DELETE_THERE} & set(actions)
    now, _, aside = done(here, there, actions)
    assert here in (base, None) or here == now or here in aside


@pytest.mark.parametrize(
    ("here", "base", "there", "actions"),
    [
        (FILE_A, FILE_A, FILE_A, []),
        (FILE_A, None, FILE_A, [Action.SETTLE]),
        (None, FILE_A, None, [Action.SETTLE]),
        (None, FILE_A, FILE_A, [Action.DELETE_THERE]),
        (FILE_A, FILE_A, None, [Action.DELETE_HERE]),
        (FILE_A, FILE_A, FILE_B, [Action.FETCH]),
        (FILE_B, FILE_A, FILE_A, [Action.STORE]),
        (None, FILE_A, FILE_B, [Action.FETCH]),
        (FILE_B, FILE_A, None, [Action.STORE]),
        (FILE_B, FILE_A, FILE_C, [Action.SET_ASIDE, Action.FETCH]),
        (FILE_A, FILE_A, DIRECTORY, [Action.DELETE_HERE, Action.FETCH]),
        (DIRECTORY, FILE_A, FILE_A, [Action.DELETE_THERE, Action.STORE]),
    ],
)
def test_each_case(here: Standing, base: Standing, there: Standing, actions: list[Action]) -> None:
    assert decide(here, base, there) == actions


@pytest.mark.parametrize(
    ("text", "path", "there"),
    [
        ("b", "a", "/m/b"),
        ("../b", "d/a", "/m/b"),
        ("../../b", "d/a", None),
        ("/data/m/d/x", "a", "/m/d/x"),
        ("/data/other", "a", None),
        ("..", "d/a", "/m"),
        ("/", "a", None),
    ],
)
def test_a_link_names_the_same_on_both_sides_or_leads_out(text: str, path: str, there: str | None) -> None:
    assert target_there(text, path, "/data/m", "/m") == there
    if there is not None:
        back = target_here(there, path, "/m")
        assert back is not None
        assert target_there(back, path, "/data/m", "/m") == there


def test_a_link_of_the_server_that_leads_out_is_none_here() -> None:
    assert target_here("/other", "a", "/m") is None
    assert target_here("/m/../x", "a", "/m") is None
    assert target_here("/x", "a", "/") == "x"
