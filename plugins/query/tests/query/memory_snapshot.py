"""Documents in memory that answer as an index does, with three small index types and their operators."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyroaring import BitMap
from svc_query.api import (
    Leaf,
    LibraryIndexType,
    LibraryReader,
    Predicate,
    QueryOperator,
    RankedPredicate,
    TermIndexType,
    Value,
)
from svc_query.built_in_operators import BUILT_IN_OPERATORS
from svc_query.ordering import sort_key
from svc_query.snapshot import VIRTUAL_FIELDS, Coverage, Document, FieldIndex, FieldUse, Progress
from svc_query.walking.version_snapshot import virtual_values

from svc.errors import InvalidInput

Path = tuple[str, ...]


class Terms:
    """A ``TermReader`` over a dictionary."""

    def __init__(self, postings: Mapping[bytes, Iterable[int]]) -> None:
        self._postings = {term: BitMap(numbers) for term, numbers in postings.items()}
        self._terms = sorted(self._postings)

    def _range(self, low: bytes | None, high: bytes | None) -> list[bytes]:
        first = 0 if low is None else bisect_left(self._terms, low)
        last = len(self._terms) if high is None else bisect_left(self._terms, high)
        return self._terms[first:last]

    def count(self, term: bytes) -> int:
        return len(self._postings.get(term, ()))

    def postings(self, term: bytes) -> BitMap:
        return BitMap(self._postings.get(term, ()))

    def count_range(self, low: bytes | None, high: bytes | None) -> int:
        return sum(len(self._postings[term]) for term in self._range(low, high))

    def postings_range(self, low: bytes | None, high: bytes | None) -> BitMap:
        return BitMap.union(BitMap(), *(self._postings[term] for term in self._range(low, high)))

    def scan(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, Sequence[int]]]:
        terms = self._range(low, high)
        for term in reversed(terms) if reverse else terms:
            yield term, list(self._postings[term])

    def scan_among(
        self, low: bytes | None, high: bytes | None, among: BitMap, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, BitMap]]:
        for term, numbers in self.scan(low, high, reverse=reverse):
            yield term, BitMap(numbers) & among

    def documents(self) -> BitMap:
        return BitMap.union(BitMap(), *self._postings.values())


class Exact(TermIndexType):
    name = "exact"
    format = 1
    ordered = True

    def terms(self, value: Value, options: Mapping[str, Any]) -> Iterable[bytes]:
        yield exact_term(value)


def exact_term(value: Value) -> bytes:
    """Order-preserving; numbers of the tests are small."""
    kind, key = sort_key(value)
    if kind == 3:
        return b"\x03" + key.encode()
    if kind == 2:
        bits = struct.unpack(">Q", struct.pack(">d", key + 0.0))[0]
        bits = bits ^ 0xFFFFFFFFFFFFFFFF if bits >> 63 else bits | 1 << 63
        return b"\x02" + bits.to_bytes(8, "big")
    return bytes((kind, int(key))) if kind < 2 else b"\x04" + repr(key).encode()


def shingles(text: str) -> set[str]:
    folded = text.casefold()
    return {folded[place : place + 2] for place in range(max(0, len(folded) - 1))}


class Trigram(TermIndexType):
    """Pairs of letters, so that short texts give many false candidates."""

    name = "trigram"
    format = 1

    def terms(self, value: Value, options: Mapping[str, Any]) -> Iterable[bytes]:
        return [one.encode() for one in shingles(value)] if isinstance(value, str) else []


class Ranked(LibraryIndexType):
    name = "fulltext"
    format = 1

    def open_writer(self, directory: Any, options: Any, state: Any) -> Any:
        pytest.fail("Nothing is written here.")

    def open_reader(self, directory: Any, options: Any, state: Any) -> Any:
        pytest.fail("Nothing is written here.")

    def open_tail(self, options: Any) -> Any:
        pytest.fail("Nothing is written here.")


class WordReader(LibraryReader):
    """Texts by number."""

    blocks = False

    def __init__(self, texts: Mapping[int, Sequence[Value]]) -> None:
        self.texts = texts

    @property
    def size(self) -> int:
        return 0


def word_score(word: str, values: Sequence[Value]) -> float | None:
    """The part of the words that are the word, coarse, so that many are equal."""
    best = None
    for value in values:
        words = value.casefold().split() if isinstance(value, str) else []
        if word in words:
            best = max(best or 0.0, round(words.count(word) / len(words), 1) or 0.1)
    return best


class Words(RankedPredicate):
    def __init__(self, word: str) -> None:
        self._word = word.casefold()

    def test(self, value: Value) -> float | None:
        return 1.0 if word_score(self._word, [value]) is not None else None

    def _found(self, reader: WordReader) -> dict[int, float]:
        scores = ((number, word_score(self._word, values)) for number, values in reader.texts.items())
        return {number: score for number, score in scores if score is not None}

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        return len(self._found(indexes["fulltext"]))

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        return BitMap(list(self._found(indexes["fulltext"])))

    def best(
        self, indexes: Mapping[str, Any], limit: int, *, below: Sequence[Path] | None = None
    ) -> list[tuple[int, float]]:
        found = sorted(
            self._found(indexes["fulltext"]).items(), key=lambda pair: (-pair[1], pair[0] * 7919 % 64)
        )
        return found[:limit]

    def matches(self, text: str) -> list[tuple[int, int]]:
        at = text.casefold().find(self._word)
        return [] if at < 0 else [(at, at + len(self._word))]


class Compared(Predicate):
    """Equality and ranges."""

    certain = True

    def __init__(self, low: Value, high: Value, *, with_low: bool, with_high: bool, bounded: str) -> None:
        self._low, self._high = low, high
        self._with_low, self._with_high = with_low, with_high
        self._bounded = bounded
        self.bounds = self._terms()

    def test(self, value: Value) -> float | None:
        kind, key = sort_key(value)
        for side, bound, included in (
            ("low", self._low, self._with_low),
            ("high", self._high, self._with_high),
        ):
            if side not in self._bounded:
                continue
            other, limit = sort_key(bound)
            if kind != other or (key == limit and not included):
                return None
            if key < limit if side == "low" else key > limit:
                return None
        return 1.0

    def _terms(self) -> tuple[bytes, bytes]:
        given = self._low if "low" in self._bounded else self._high
        kind = bytes((sort_key(given)[0],))
        low = kind
        high = bytes((kind[0] + 1,))
        if "low" in self._bounded:
            low = exact_term(self._low) + (b"" if self._with_low else b"\0")
        if "high" in self._bounded:
            high = exact_term(self._high) + (b"\0" if self._with_high else b"")
        return low, high

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        low, high = self._terms()
        return indexes["exact"].count_range(low, high) if low < high else 0

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        low, high = self._terms()
        return indexes["exact"].postings_range(low, high) if low < high else BitMap()


class NotEqual(Predicate):
    def __init__(self, value: Value) -> None:
        self._value = value

    def test(self, value: Value) -> float | None:
        return None if sort_key(value) == sort_key(self._value) else 1.0

    def test_all(self, values: Sequence[Value]) -> float | None:
        return 1.0 if values and all(self.test(value) for value in values) else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        return indexes["exact"].count_range(None, None)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        return indexes["exact"].documents()


class AnyOf(Predicate):
    certain = True

    def __init__(self, values: Sequence[Value]) -> None:
        self._values = values
        self._keys = {sort_key(value) for value in values}

    def test(self, value: Value) -> float | None:
        return 1.0 if sort_key(value) in self._keys else None

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        return sum(indexes["exact"].count(exact_term(value)) for value in self._values)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        found = (indexes["exact"].postings(exact_term(value)) for value in self._values)
        return BitMap.union(BitMap(), *found)


class Contains(Predicate):
    """Scored by length, so that scores differ where a test asks for that."""

    def __init__(self, needle: str, *, scored: bool) -> None:
        self._needle = needle.casefold()
        self.scored = scored

    def test(self, value: Value) -> float | None:
        if not isinstance(value, str) or self._needle not in value.casefold():
            return None
        return round(len(self._needle) / len(value), 1) or 0.1 if self.scored and value else 1.0

    def estimate(self, indexes: Mapping[str, Any]) -> int | None:
        terms = shingles(self._needle)
        return min((indexes["trigram"].count(one.encode()) for one in terms), default=None)

    def candidates(self, indexes: Mapping[str, Any]) -> BitMap | None:
        terms = shingles(self._needle)
        if not terms:
            return None
        return BitMap.intersection(*(indexes["trigram"].postings(one.encode()) for one in terms))

    def matches(self, text: str) -> list[tuple[int, int]]:
        at = text.casefold().find(self._needle)
        return [(at, at + len(self._needle))] if at >= 0 and self._needle else []


class Operator(QueryOperator):
    """An operator of the tests, by a function."""

    name = ""
    index_types = ()

    def __init__(
        self,
        name: str,
        index_type: str,
        make: Callable[[Leaf], Predicate],
        options: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name  # type: ignore[misc]
        self.index_types = ((index_type,),)  # type: ignore[misc]
        self.options = options  # type: ignore[misc]
        self._make = make

    def compile(self, leaf: Leaf) -> Predicate:
        return self._make(leaf)


def _text(leaf: Leaf) -> str:
    if not isinstance(leaf.value, str):
        raise InvalidInput("The value is a text.", field="where.value")
    return leaf.value


def _range(leaf: Leaf) -> Predicate:
    name, value = leaf.op, leaf.value
    if name == "between":
        if sort_key(value)[0] != sort_key(leaf.options["value2"])[0]:
            return AnyOf([])
        return Compared(value, leaf.options["value2"], with_low=True, with_high=True, bounded="low high")
    if name == "eq":
        return Compared(value, value, with_low=True, with_high=True, bounded="low high")
    side = "low" if name[0] == "g" else "high"
    closed = name.endswith("e")
    return Compared(value, value, with_low=closed, with_high=closed, bounded=side)


OPERATORS: dict[str, QueryOperator] = {
    one.name: one
    for one in (
        *(Operator(name, "exact", _range) for name in ("eq", "gt", "gte", "lt", "lte")),
        Operator("between", "exact", _range, frozenset({"value2"})),
        Operator("ne", "exact", lambda leaf: NotEqual(leaf.value)),
        Operator("in", "exact", lambda leaf: AnyOf(leaf.value)),
        Operator("contains", "trigram", lambda leaf: Contains(_text(leaf), scored=False)),
        Operator("similar", "trigram", lambda leaf: Contains(_text(leaf), scored=True)),
        Operator("search", "fulltext", lambda leaf: Words(_text(leaf))),
        *BUILT_IN_OPERATORS,
    )
}
INDEX_TYPES = {"exact": Exact(), "trigram": Trigram(), "fulltext": Ranked()}


@dataclass
class MemorySnapshot:
    """Documents by path; some of them may not be flushed.

    Attributes:
        files: values of the fields, by path.
        indexes_by_field: names of index types, by field and directory: ``{"title": {("a",): ["exact"]}}``.
        unflushed: paths of the documents that term readers do not know.
    """

    files: dict[Path, dict[str, list[Value]]]
    indexes_by_field: dict[str, dict[Path, list[str]]]
    unflushed: frozenset[Path] = frozenset()
    sequence: int = 1
    epoch: bytes = b"e"
    indexed: bool = True
    reindexing: Progress | None = None
    order: list[Path] = field(init=False)

    def __post_init__(self) -> None:
        # Numbers are in no relation to the order of the paths, and some are of nothing.
        scattered = sorted(self.files, key=lambda path: str(path)[::-1])
        self._documents = {}
        for place, path in enumerate(scattered):
            number = place * 2 + 1
            values = self.files[path]
            size = values.get("@size", [len(str(values))])[0]
            assert isinstance(size, int)
            shown = {name: one for name, one in values.items() if not name.startswith("@") and one}
            self._documents[number] = Document(
                number, path, size, "text/plain", 1_000 + number, 2_000 + number, bytes(32), shown
            )
        self.order = sorted(self.files)
        self._numbers = {document.path: number for number, document in self._documents.items()}
        self._tail = [one for one in self._documents.values() if one.path in self.unflushed]
        self._indexes: dict[str, list[FieldIndex]] = {}
        for name, directories in self.indexes_by_field.items():
            self._indexes[name] = self._index(name, directories)

    def _types_of(self, name: str, path: Path) -> list[str]:
        directories = self.indexes_by_field.get(name, {})
        return next(
            (
                directories[path[:length]]
                for length in range(len(path), -1, -1)
                if path[:length] in directories
            ),
            [],
        )

    def _index(self, name: str, directories: dict[Path, list[str]]) -> list[FieldIndex]:
        found = []
        for type_name in sorted({one for types in directories.values() for one in types}):
            kind = INDEX_TYPES[type_name]
            flushed: dict[int, Sequence[Value]] = {}
            tail: dict[int, Sequence[Value]] = {}
            for number, document in self._documents.items():
                values = self.values(document, name)
                if values and type_name in self._types_of(name, document.path):
                    (tail if document.path in self.unflushed else flushed)[number] = values
            if isinstance(kind, TermIndexType):
                postings: dict[bytes, list[int]] = {}
                for number, values in flushed.items():
                    for value in values:
                        for term in kind.terms(value, {}):
                            postings.setdefault(term, []).append(number)
                # Dead documents stay in segments until those are merged.
                for dead, numbers in enumerate(
                    list(postings.values())[::3], max(self._documents, default=0) + 1
                ):
                    numbers.append(dead)
                found.append(FieldIndex(name, kind, {}, Flushed(postings, flushed)))
            else:
                found.append(FieldIndex(name, kind, {}, WordReader(flushed), WordReader(tail)))
        return found

    def live(self) -> BitMap:
        return BitMap(list(self._documents))

    def below(self, path: Path) -> BitMap:
        return BitMap([number for where, number in self._numbers.items() if where[: len(path)] == path])

    def count_below(self, path: Path) -> int:
        return len(self.below(path))

    def in_path_order(
        self, path: Path, *, after: Path | None = None, reverse: bool = False, among: BitMap | None = None
    ) -> Iterator[tuple[Path, int]]:
        paths = self.order
        if after is not None:
            paths = paths[: bisect_left(paths, after)] if reverse else paths[bisect_right(paths, after) :]
        for one in reversed(paths) if reverse else paths:
            if one[: len(path)] == path:
                yield one, self._numbers[one]

    def document(self, number: int) -> Document | None:
        return self._documents.get(number)

    def paths_of(self, numbers: Iterable[int]) -> Iterator[tuple[Path, int]]:
        return ((one.path, one.id) for one in self.documents(numbers))

    def documents(self, numbers: Iterable[int]) -> Iterator[Document]:
        return (self._documents[number] for number in numbers if number in self._documents)

    def values(self, document: Document, field: str) -> Sequence[Value]:
        if field in VIRTUAL_FIELDS:
            return virtual_values(document, field)
        if not self._types_of(field, document.path):
            return ()
        return document.fields.get(field, ())

    knows_tail = False

    def tail(self) -> Sequence[Document]:
        return self._tail

    def indexes(self, field: str) -> Sequence[FieldIndex]:
        return self._indexes.get(field, []) if self.indexed else []

    def coverage(self, path: Path) -> Coverage:
        fields = {}
        for name, directories in self.indexes_by_field.items():
            near = [
                frozenset(types)
                for directory, types in directories.items()
                if directory[: len(path)] == path or path[: len(directory)] == directory
            ]
            if near:
                types = frozenset().union(*near)
                fields[name] = FieldUse(name, frozenset({"auto"}), types, len(set(near)) == 1)
        return Coverage(fields)

    def progress(self, path: Path) -> Progress | None:
        return self.reindexing

    def waiting(self, path: Path) -> int:
        return 0


class Flushed(Terms):
    """Terms that also know the documents that have values without any."""

    def __init__(self, postings: Mapping[bytes, Iterable[int]], flushed: Iterable[int]) -> None:
        super().__init__(postings)
        self._flushed = BitMap(list(flushed))

    def documents(self) -> BitMap:
        return super().documents() | self._flushed
