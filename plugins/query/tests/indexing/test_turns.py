"""What a query makes in memory of documents that no flush has taken in leaves others their turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from svc_query.indexing import IndexSnapshot
from svc_query.testing.indexed_database import Indexed, Names, Words

from svc.executor import Executor, current_executor, use_executor

MANY = 20


class Left(BaseException):
    """Nobody waits any more."""


class Turns(Executor):
    """Counts the turns that others had; at one of them who asked leaves."""

    def __init__(self) -> None:
        self.turns = 0
        self.leaves_at = 0

    def pause(self) -> None:
        self.turns += 1
        if self.turns == self.leaves_at:
            raise Left


@pytest.fixture
def turns() -> Iterator[Turns]:
    before, counted = current_executor(), Turns()
    use_executor(counted)
    yield counted
    use_executor(before)


def slowly(function: Callable[..., object]) -> Callable[..., object]:
    def call(*args: object) -> object:
        time.sleep(0.003)
        return function(*args)

    return call


def found_by_both(snapshot: IndexSnapshot) -> tuple[int, int]:
    """Looks at the indexes of both kinds; returns what the one of terms counts and has for one of them."""
    reader = next(one.reader for one in snapshot.indexes("t") if one.type.name == "exact")
    return reader.count(b"sone"), len(reader.postings(b"sone"))


@pytest.fixture
def filled(indexed: Indexed) -> Indexed:
    indexed.configure("", {"name": "t", "type": ["exact", "names"]})
    indexed.finish()
    indexed.put({f"/{number:02}.json": {"t": "one"} for number in range(MANY)})
    indexed.read(lambda snapshot: None)
    return indexed


@pytest.mark.parametrize("kind", [Words, Names])
def test_others_have_their_turns(
    filled: Indexed, turns: Turns, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    if kind is Words:
        monkeypatch.setattr(Words, "terms", slowly(Words.terms))
    else:
        tail = type(Names().open_tail({}))
        monkeypatch.setattr(tail, "add", slowly(tail.add))
    before = turns.turns
    assert filled.read(found_by_both) == (MANY, MANY)
    assert turns.turns - before >= MANY


def test_who_leaves_leaves_nothing_half_done(
    filled: Indexed, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert filled.read(found_by_both) == (MANY, MANY)
    filled.put({f"/more{number:02}.json": {"t": "one"} for number in range(MANY)})
    filled.read(lambda snapshot: None)
    monkeypatch.setattr(Words, "terms", slowly(Words.terms))
    turns.leaves_at = turns.turns + MANY // 2
    with pytest.raises(Left):
        filled.read(found_by_both)
    assert filled.read(found_by_both) == (2 * MANY, 2 * MANY)


def test_documents_are_decoded_in_turns(open_index: Callable[..., Indexed], turns: Turns) -> None:
    indexed = open_index()
    indexed.configure("", {"name": "t", "type": "exact"})
    indexed.finish()
    indexed.put({f"/{number}.json": {"t": number} for number in range(1_000)})
    before = turns.turns
    assert indexed.read(lambda snapshot: len(snapshot.tail())) == 1_000
    assert turns.turns - before >= 3
