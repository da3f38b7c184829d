"""What the tests of segments share: an index beside a dictionary that says what it should hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

import pytest
from pyroaring import BitMap
from svc_query.segments import TermIndexReader, TermIndexWriter, unused_files


class IndexBeside:
    """An index, and its model: the documents of each term."""

    def __init__(self, directory: Path, *, ordered: bool) -> None:
        self.directory = directory
        self.ordered = ordered
        self.writer = TermIndexWriter(directory, None, ordered=ordered)
        self.dead = BitMap()
        self.model: dict[bytes, set[int]] = {}

    @property
    def manifest(self) -> bytes:
        return self.writer.manifest

    def add(self, number: int, terms: Sequence[bytes]) -> None:
        self.writer.add(number, terms)
        for term in terms:
            self.model.setdefault(term[:1024], set()).add(number)

    def merge(self) -> int:
        """Merges as long as something is worth it; returns how many merges those were."""
        for count in range(1_000):
            plan = self.writer.merge_plan(self.manifest, self.dead)
            if plan is None:
                return count
            for _ in plan.run():
                pass
            self.writer.manifest = plan.apply(self.manifest)
            for path in unused_files(self.directory, self.manifest):
                path.unlink()
        raise AssertionError("Merging has no end.")

    def reader(self, before: TermIndexReader | None = None) -> TermIndexReader:
        return TermIndexReader(self.directory, self.manifest, ordered=self.ordered, before=before)

    def live(self, numbers: Iterable[int]) -> set[int]:
        return {number for number in numbers if number not in self.dead}

    def check(self, reader: TermIndexReader, random: Random, lookups: int = 40) -> None:
        """Compares answers with the model: terms, ranges, scans both ways."""
        keys = sorted(self.model)
        for term in [*random.sample(keys, min(lookups, len(keys))), b"", b"zzz", b"\xff" * 2_000]:
            expected = self.live(self.model.get(term[:1024], ()))
            assert self.live(reader.postings(term)) == expected
            assert reader.count(term) >= len(expected)
        some = [*random.sample(keys, len(keys) // 2), b"nowhere"]
        expected = self.live(number for term in some[:-1] for number in self.model[term])
        assert self.live(reader.postings_of_any(some)) == expected
        for _ in range(lookups // 8):
            self.check_range(reader, *(random.choice([None, *random.choices(keys, k=3)]) for _ in range(2)))

    def check_range(self, reader: TermIndexReader, low: bytes | None, high: bytes | None) -> None:
        inside = {
            term: live
            for term, numbers in self.model.items()
            if (low is None or term >= low) and (high is None or term < high) and (live := self.live(numbers))
        }
        found = reader.postings_range(low, high)
        assert self.live(found) == set().union(*inside.values())
        assert reader.count_range(low, high) >= len(set().union(*inside.values()))
        forward = [(term, list(numbers)) for term, numbers in reader.scan(low, high)]
        backward = [(term, list(numbers)) for term, numbers in reader.scan(low, high, reverse=True)]
        for step in (1, 3, 1_000):
            among = BitMap(list(reader.documents())[::step])
            some = list(reader.scan_among(low, high, among))
            wanted = ((term, [one for one in numbers if one in among]) for term, numbers in forward)
            assert [(term, list(numbers)) for term, numbers in some if numbers] == [
                (term, numbers) for term, numbers in wanted if numbers
            ]
            terms = [term for term, _ in some]
            assert terms == sorted(terms)
            backwards = list(reader.scan_among(low, high, among, reverse=True))
            assert [one for one in backwards if one[1]] == [one for one in some if one[1]][::-1]
        assert forward == backward[::-1]
        assert all(numbers == sorted(set(numbers)) for _, numbers in forward)
        assert [term for term, _ in forward] == sorted({term for term, _ in forward})
        alive = {term: self.live(numbers) for term, numbers in forward}
        assert {term: live for term, live in alive.items() if live} == inside
        assert {term for term, _ in forward} == set(reader.terms(low, high))


@pytest.fixture(params=[False, True], ids=["unordered", "ordered"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> IndexBeside:
    """An index without documents, ordered or not."""
    return IndexBeside(tmp_path / "index", ordered=request.param)
