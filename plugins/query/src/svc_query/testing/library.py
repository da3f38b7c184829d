"""The contract of an index type on a library, as tests, together with its operator.

class TestMine(LibraryIndexTypeContract):
    plugin_id = "index.mine"
    operator = MyOperator()

    @pytest.fixture
    def extension(self):
        return MyIndexType()

    def make_values(self, random): ...
    def make_leaf(self, random): ...
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath
from random import Random
from typing import Any, ClassVar

import msgspec
import pytest
from pyroaring import BitMap

from svc.errors import InvalidInput
from svc.plugin import Path
from svc_query.api import (
    INDEX_TYPES,
    IndexDocument,
    Leaf,
    LibraryIndexType,
    LibraryReader,
    Predicate,
    QueryOperator,
    RankedPredicate,
    Value,
)
from svc_testing import ExtensionContract

__all__ = ["LibraryIndexTypeContract"]

ALL = 1 << 31
FOLDERS: tuple[Path, ...] = ((), ("a",), ("a", "b"), ("c",))

ODD_VALUES: tuple[Value, ...] = (
    None, True, False, 0, -1, 2**70, 1.5, float("inf"), "", " ", "\x00", "\ud800", "a\u0301", "x" * 70_000,
    "word " * 3_000, (), (1.0,), (float("nan"), 1.0), (1e308,) * 8,
    (10**400,) * 5, 10**3_000,
)  # fmt: skip


class LibraryIndexTypeContract(ExtensionContract):
    """Tests of an index type on a library, and of its operator.

    A subclass sets ``plugin_id`` and ``operator``, gives the fixture ``extension``, and makes values and
    leaves: such that some documents match and others don't.

    Attributes:
        operator: the operator that asks the index type.
        options: members of an entry of ``indexes.json``.
        bad_options: members that ``normalize`` refuses.
        bad_leaves: leaves that the operator refuses.
        tolerance: how far scores of files and of the tail may be apart; None where they have no common
            measure.
    """

    family = INDEX_TYPES
    operator: ClassVar[QueryOperator]
    options: ClassVar[Mapping[str, Any]] = {}
    bad_options: ClassVar[Sequence[Mapping[str, Any]]] = ()
    bad_leaves: ClassVar[Sequence[Leaf]] = ()
    tolerance: ClassVar[float | None] = None

    def make_values(self, random: Random) -> Sequence[Value]:
        """Returns the values of a document; at least one."""
        pytest.fail(f"{type(self).__name__} must make values.")

    def make_leaf(self, random: Random) -> Leaf:
        """Returns a leaf that the operator takes, without ``index_options``."""
        pytest.fail(f"{type(self).__name__} must make leaves.")

    # -- what tests are made of ----------------------------------------------------------------

    @pytest.fixture
    def known(self, extension: LibraryIndexType) -> dict[str, Any]:
        """The options, as they are kept."""
        return extension.normalize(self.options)

    def make_documents(self, random: Random, first: int, count: int) -> list[IndexDocument]:
        """Returns documents with increasing numbers, some of which are left out."""
        numbers = [first]
        while len(numbers) < count:
            numbers.append(numbers[-1] + random.choice([1, 1, 1, 2, 50]))
        return [
            IndexDocument(number, (*random.choice(FOLDERS), f"{number}.txt"), self.make_values(random))
            for number in numbers
        ]

    def compile(self, leaf: Leaf, extension: LibraryIndexType, known: Mapping[str, Any]) -> Predicate:
        """Returns a leaf, ready to be asked of the index type."""
        options = {extension.name: known}
        return self.operator.compile(msgspec.structs.replace(leaf, index_options=options))

    def predicates(self, extension: LibraryIndexType, known: Mapping[str, Any], seed: int) -> list[Predicate]:
        """Returns some leaves, ready to be asked."""
        random = Random(f"leaves {seed}")
        return [self.compile(self.make_leaf(random), extension, known) for _ in range(9)]

    # -- tests ---------------------------------------------------------------------------------

    def test_options_come_to_the_same_twice(self, extension: LibraryIndexType, known: dict[str, Any]) -> None:
        """What ``normalize`` returns is JSON, and is what it takes."""
        assert extension.normalize(known) == known
        assert json.loads(json.dumps(known)) == known
        assert set(known) <= extension.options

    def test_bad_options_are_refused(self, extension: LibraryIndexType) -> None:
        """An option that is not as it should be is named."""
        for options in self.bad_options:
            with pytest.raises(InvalidInput) as refused:
                extension.normalize(options)
            assert refused.value.details["field"] in options

    def test_bad_leaves_are_refused(self, extension: LibraryIndexType, known: dict[str, Any]) -> None:
        """A leaf that makes no sense is refused with the member that is wrong."""
        for leaf in self.bad_leaves:
            with pytest.raises(InvalidInput) as refused:
                self.compile(leaf, extension, known)
            assert refused.value.details["field"] in {"value", *self.operator.options}
            assert leaf.field in refused.value.message

    def test_some_documents_match_and_others_do_not(
        self, extension: LibraryIndexType, known: dict[str, Any]
    ) -> None:
        """The values and leaves of the subclass are such that the tests here can fail."""
        documents = self.make_documents(Random(0), 1, 200)
        found = [_matching(predicate, documents) for predicate in self.predicates(extension, known, 0)]
        assert any(found)

    @pytest.mark.parametrize("seed", range(3))
    def test_a_history_comes_to_what_a_rebuild_does(
        self, extension: LibraryIndexType, known: dict[str, Any], tmp_path: FilePath, seed: int
    ) -> None:
        """Flushes, dead documents, restarts, crashes and double delivery leave what one go does."""
        random = Random(seed)
        history = _History(extension, known, tmp_path / "history")
        predicates = self.predicates(extension, known, seed)
        for _ in range(6):
            history.add(self.make_documents(random, history.next_number, random.randrange(1, 60)))
            if random.random() < 0.4:
                history.deliver_again(random)
            if random.random() < 0.3:
                history.crash(counts=random.random() < 0.5)
            history.kill_some(random)
            history.flush()
            if random.random() < 0.5:
                history.reopen()
            reader = history.reader()
            check_answers(predicates, extension.name, reader, history.documents.values(), history.dead)
            reader.close()
        history.close()
        rebuilt = _History(extension, known, tmp_path / "rebuilt")
        rebuilt.add(list(history.documents.values()))
        rebuilt.flush()
        reader = rebuilt.reader()
        check_answers(predicates, extension.name, reader, history.documents.values(), history.dead)
        assert reader.size > 0
        reader.close()
        rebuilt.close()

    def test_what_was_flushed_but_does_not_count_is_not_there_twice(
        self, extension: LibraryIndexType, known: dict[str, Any], tmp_path: FilePath
    ) -> None:
        """Files ahead of the state, as after a crash, do no harm; nor does a second one."""
        history = _History(extension, known, tmp_path / "index")
        history.add(self.make_documents(Random(1), 1, 30))
        history.flush()
        for round_ in range(3):
            history.add(self.make_documents(Random(round_), history.next_number, 20))
            history.crash(counts=False)
        history.flush()
        reader = history.reader()
        predicates = self.predicates(extension, known, 1)
        check_answers(predicates, extension.name, reader, history.documents.values(), BitMap())
        history.close()

    def test_a_reader_stays_at_its_state(
        self, extension: LibraryIndexType, known: dict[str, Any], tmp_path: FilePath
    ) -> None:
        """Documents that died later are found by a reader that was opened before; also through merges."""
        history = _History(extension, known, tmp_path / "index")
        random = Random(2)
        history.add(self.make_documents(random, 1, 300))
        state = history.flush()
        reader = extension.open_reader(history.directory, known, state)
        before = list(history.documents.values())
        predicates = self.predicates(extension, known, 2)
        for _ in range(3):
            history.add(self.make_documents(random, history.next_number, 200))
            history.dead |= BitMap(list(history.documents)[: len(history.documents) // 2])
            history.flush()
        above = before[-1].id + 1
        check_answers(predicates, extension.name, reader, before, BitMap(), above=above)
        reader.close()
        history.close()

    def test_the_state_before_can_be_opened_until_the_next_flush(
        self, extension: LibraryIndexType, known: dict[str, Any], tmp_path: FilePath
    ) -> None:
        """A reader that is a little late finds its files."""
        history = _History(extension, known, tmp_path / "index")
        history.add(self.make_documents(Random(3), 1, 40))
        state = history.flush()
        before = list(history.documents.values())
        history.add(self.make_documents(Random(4), history.next_number, 40))
        history.flush()
        reader = extension.open_reader(history.directory, known, state)
        predicates = self.predicates(extension, known, 3)
        check_answers(predicates, extension.name, reader, before, BitMap(), above=before[-1].id + 1)
        reader.close()
        history.close()

    def test_a_state_that_is_gone_is_told(
        self, extension: LibraryIndexType, known: dict[str, Any], tmp_path: FilePath
    ) -> None:
        """Whoever comes much too late gets FileNotFoundError."""
        history = _History(extension, known, tmp_path / "index")
        history.add(self.make_documents(Random(3), 1, 40))
        state = history.flush()
        history.close()
        empty = tmp_path / "empty"
        empty.mkdir()
        with pytest.raises(FileNotFoundError):
            extension.open_reader(empty, known, state)

    def test_an_empty_index_answers(
        self, extension: LibraryIndexType, known: dict[str, Any], tmp_path: FilePath
    ) -> None:
        """A flush of nothing makes a state that can be read, of files and in memory."""
        history = _History(extension, known, tmp_path / "index")
        history.flush()
        reader = history.reader()
        predicates = self.predicates(extension, known, 4)
        check_answers(predicates, extension.name, reader, [], BitMap())
        check_answers(predicates, extension.name, extension.open_tail(known).reader(), [], BitMap())
        reader.close()
        history.close()

    def test_the_tail_answers_as_files_do(
        self, extension: LibraryIndexType, known: dict[str, Any], tmp_path: FilePath
    ) -> None:
        """A document is found, and found as good, whether a flush has taken it in or not."""
        history = _History(extension, known, tmp_path / "index")
        random = Random(5)
        history.add(self.make_documents(random, 1, 300))
        history.flush()
        reader = history.reader()
        recent = self.make_documents(random, history.next_number, 60)
        tail = extension.open_tail(known)
        tail.add(recent)
        beside = tail.reader(reader)
        assert isinstance(beside, LibraryReader)
        predicates = self.predicates(extension, known, 5)
        check_answers(predicates, extension.name, beside, recent, BitMap())
        tail.add(recent[:10])
        check_answers(predicates, extension.name, tail.reader(reader), recent, BitMap())
        history.add(recent)
        history.flush()
        whole = history.reader()
        if self.tolerance is not None:
            for predicate in predicates:
                assert isinstance(predicate, RankedPredicate)
                told = dict(predicate.best({extension.name: beside}, ALL))
                of_files = dict(predicate.best({extension.name: whole}, ALL))
                for number, score in told.items():
                    assert abs(score - of_files[number]) <= self.tolerance, (predicate, number)
        whole.close()
        reader.close()
        history.close()

    def test_values_of_any_kind_do_no_harm(
        self, extension: LibraryIndexType, known: dict[str, Any], tmp_path: FilePath
    ) -> None:
        """A value that the type does not know is left out; what stands beside it is found."""
        random = Random(6)
        documents = [
            IndexDocument(number, ("odd", str(number)), (value, *self.make_values(random)))
            for number, value in enumerate(ODD_VALUES)
        ]
        documents += [
            IndexDocument(100 + number, ("odd", str(number)), (value,))
            for number, value in enumerate(ODD_VALUES)
        ]
        history = _History(extension, known, tmp_path / "index")
        history.add(documents)
        history.flush()
        reader = history.reader()
        tail = extension.open_tail(known)
        tail.add(documents)
        predicates = self.predicates(extension, known, 6)
        check_answers(predicates, extension.name, reader, documents, BitMap())
        check_answers(predicates, extension.name, tail.reader(reader), documents, BitMap())
        reader.close()
        history.close()

    def test_32_threads_read_while_one_writes(
        self, extension: LibraryIndexType, known: dict[str, Any], tmp_path: FilePath
    ) -> None:
        """Readers that share one reader, and open their own, get whole answers of their state."""
        history = _History(extension, known, tmp_path / "index")
        random = Random(7)
        history.add(self.make_documents(random, 1, 200))
        state = history.flush()
        documents = list(history.documents.values())
        above = documents[-1].id + 1
        shared = extension.open_reader(history.directory, known, state)
        predicates = self.predicates(extension, known, 7)

        def read(turn: int) -> None:
            own = extension.open_reader(history.directory, known, state) if turn % 4 == 0 else shared
            for predicate in predicates[turn % 3 :: 3]:
                check_answers([predicate], extension.name, own, documents, BitMap(), above=above)
            if own is not shared:
                own.close()

        with ThreadPoolExecutor(32) as pool:
            running = [pool.submit(read, turn) for turn in range(64)]
            history.add(self.make_documents(random, history.next_number, 100))
            history.flush()
            for task in running:
                task.result(timeout=60)
        shared.close()
        history.close()


class _History:
    """What a driver does with an index, and what should be in it.

    Attributes:
        directory: of the index.
        documents: all that were added, by number.
        dead: numbers of those that the driver no longer counts.
    """

    def __init__(self, extension: LibraryIndexType, known: Mapping[str, Any], directory: FilePath) -> None:
        directory.mkdir()
        self.directory = directory
        self.documents: dict[int, IndexDocument] = {}
        self.dead = BitMap()
        self._extension = extension
        self._known = known
        self._state: bytes | None = None
        self._since: list[IndexDocument] = []
        self._writer = extension.open_writer(directory, known, None)

    @property
    def next_number(self) -> int:
        return max(self.documents, default=0) + 1

    def add(self, documents: Sequence[IndexDocument]) -> None:
        self._writer.add(documents)
        self._since += documents
        self.documents.update((document.id, document) for document in documents)

    def deliver_again(self, random: Random) -> None:
        """Adds documents a second time, some of them from before the last flush."""
        self._writer.add(random.sample(list(self.documents.values()), min(5, len(self.documents))))

    def kill_some(self, random: Random) -> None:
        self.dead |= BitMap(random.sample(list(self.documents), len(self.documents) // 5))

    def flush(self) -> bytes:
        """Makes a state that counts."""
        self._state = self._writer.flush(self.dead)
        self._since = []
        return self._state

    def reopen(self) -> None:
        self._writer.close()
        self._writer = self._extension.open_writer(self.directory, self._known, self._state)
        self._writer.add(self._since)

    def crash(self, *, counts: bool) -> None:
        """The process ends behind a flush, whose state counts or not; what does not comes again."""
        state = self._writer.flush(self.dead)
        if counts:
            self._state, self._since = state, []
        self.reopen()

    def reader(self) -> LibraryReader:
        assert self._state is not None
        return self._extension.open_reader(self.directory, self._known, self._state)

    def close(self) -> None:
        self._writer.close()


def _matching(predicate: Predicate, documents: Iterable[IndexDocument]) -> set[int]:
    """Returns the documents that match, by the meaning of the leaf."""
    return {document.id for document in documents if predicate.test_all(document.values) is not None}


def check_answers(
    predicates: Iterable[Predicate],
    name: str,
    reader: LibraryReader,
    documents: Iterable[IndexDocument],
    dead: BitMap,
    *,
    above: int = ALL,
) -> None:
    """Checks that an index gives what the meaning of the leaves says."""
    documents = list(documents)
    paths = {document.id: document.path for document in documents}
    indexes = {name: reader}
    for predicate in predicates:
        matching = _matching(predicate, documents)
        living = matching - set(dead)
        known = reader.documents()
        assert known is None or living <= set(known), "Documents that it knows are left out."
        candidates = predicate.candidates(indexes)
        if candidates is not None:
            found = {number for number in candidates if number < above}
            assert living <= found, "Documents that match are missing."
            if predicate.certain:
                assert found <= matching, "Documents that don't match are certain candidates."
            estimate = predicate.estimate(indexes)
            assert estimate is None or estimate >= len(candidates), "The estimate is below the candidates."
        if isinstance(predicate, RankedPredicate) and above == ALL:
            _check_ranks(predicate, indexes, paths, matching, living)


def _check_ranks(
    predicate: RankedPredicate,
    indexes: Mapping[str, Any],
    paths: Mapping[int, Path],
    matching: set[int],
    living: set[int],
) -> None:
    ranked = predicate.best(indexes, ALL)
    scores = dict(ranked)
    assert len(scores) == len(ranked), "A document is there twice."
    assert living <= set(scores) <= matching, "The ranked documents are not those that match."
    assert all(0 < score <= 1 for score in scores.values())
    assert [score for _, score in ranked] == sorted(scores.values(), reverse=True)
    few = predicate.best(indexes, 3)
    assert [score for _, score in few] == pytest.approx([score for _, score in ranked[:3]])
    below = predicate.best(indexes, ALL, below=[("a",), ("c",)])
    wanted = {number for number in living if paths[number][0] in "ac"}
    assert wanted <= {number for number, _ in below} <= set(scores)
    assert {number: score for number, score in below if number in wanted} == pytest.approx(
        {number: scores[number] for number in wanted}
    )
    some = BitMap(sorted(paths)[::2])
    assert predicate.scores(indexes, some) == pytest.approx(
        {number: score for number, score in scores.items() if number in some}
    )
