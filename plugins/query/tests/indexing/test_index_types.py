"""The contract of index types, held by one of terms and one of a library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyroaring import BitMap
from svc_query.api import IndexType, Leaf, Predicate, QueryOperator, Value
from svc_query.indexing import working
from svc_query.testing.index_types import FIELD, IndexTypeContract
from svc_query.testing.indexed_database import Names, NamesReader, Source, Words


class Same(QueryOperator):
    """Equal texts."""

    name = "same"
    index_types = (("exact",), ("names",))

    def compile(self, leaf: Leaf) -> Predicate:
        return _Same(leaf.value)


class _Same(Predicate):
    def __init__(self, value: str) -> None:
        self._value = value

    def test(self, value: Value) -> float | None:
        return 1.0 if value == self._value else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        return None

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        (reader,) = indexes.values()
        if isinstance(reader, NamesReader):
            return BitMap([int(number) for number, values in reader.known.items() if self._value in values])
        found: BitMap = reader.postings(b"s" + self._value.encode())
        return found


class _Contract(IndexTypeContract):
    operator = Same()

    def make_value(self, random: Random) -> Any:
        return [random.choice("abc") for _ in range(random.randrange(3))]

    def make_leaf(self, random: Random) -> Leaf:
        return Leaf(FIELD, "same", random.choice("abcd"))


class TestTerms(_Contract):
    @pytest.fixture
    def extension(self) -> IndexType:
        return Words()


class TestLibrary(_Contract):
    @pytest.fixture
    def extension(self) -> IndexType:
        return Names()


class Forgetful(Words):
    """Loses what begins with an a."""

    def terms(self, value: Value, options: Mapping[str, Any]) -> list[bytes]:
        return [] if value == "a" else list(super().terms(value, options))


def test_a_type_that_loses_values_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "IDLE_FLUSH_DOCUMENTS", 6)
    contract = _Contract()
    contract._extension = Forgetful()
    source = Source()
    source.types = {"exact": contract._extension}
    source.use()
    with pytest.raises(AssertionError):
        contract.test_files_that_come_and_go_are_found(source, contract._extension, tmp_path)
