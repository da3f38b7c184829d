"""The corpus of RFC 9112 against the worker, however its bytes arrive."""

from __future__ import annotations

import random

import pytest
from corpus import CASES, Case
from observing import Outcome, observe, random_pieces

by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def check(case: Case, outcome: Outcome) -> None:
    assert (outcome.statuses, outcome.closes) == (case.statuses, case.closes), outcome.answers
    for answer in outcome.answers:
        assert answer.complete
        if answer.status >= 400:
            assert set(answer.json) == {"error", "code"}
            assert answer.get("connection") == "close"
            assert answer.get("content-type") == "application/json"
            assert len(answer.get("x-request-id") or "") == 32
        if answer.status >= 200:
            assert answer.get("date")
    for member, value in case.echo:
        assert outcome.answers[0].json[member] == value


def test_the_names_of_cases_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@by_name
def test_as_a_whole(case: Case, server) -> None:
    check(case, observe(case, server.address, [case.data]))


@by_name
def test_byte_by_byte(case: Case, server) -> None:
    if len(case.data) > 2000:
        step = len(case.data) // 500
        pieces = [case.data[at : at + step] for at in range(0, len(case.data), step)]
    else:
        pieces = [case.data[at : at + 1] for at in range(len(case.data))]
    outcome = observe(case, server.address, pieces)
    if case.name == "100-continue when the body is there already" and outcome.statuses[0] == 100:
        # Whether it was there is a matter of time.
        outcome = Outcome(outcome.statuses[1:], outcome.closes, outcome.answers[1:])
    check(case, outcome)


@by_name
def test_in_random_pieces(case: Case, server) -> None:
    dice = random.Random(case.name)
    for _ in range(2):
        outcome = observe(case, server.address, random_pieces(case.data, dice))
        if case.name == "100-continue when the body is there already" and outcome.statuses[0] == 100:
            outcome = Outcome(outcome.statuses[1:], outcome.closes, outcome.answers[1:])
        check(case, outcome)


def test_what_was_refused_left_no_traceback(server) -> None:
    before = server.log.count("Traceback")
    for case in CASES:
        observe(case, server.address, [case.data])
    assert server.log.count("Traceback") == before
