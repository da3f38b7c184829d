"""The contract of an index type of any kind within a real database, as tests.

class TestMine(IndexTypeContract):
    operator = MyOperator()

    @pytest.fixture
    def extension(self):
        return MyIndexType()

    def make_value(self, random): ...
    def make_leaf(self, random): ...

The contracts of terms and of libraries test a type alone; this one what becomes of it when files come and go.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from random import Random
from typing import Any, ClassVar

import gevent
import msgspec
import pytest
from pyroaring import BitMap

from svc.plugin import Database, PluginContext, ViewStorage
from svc_query.api import IndexType, Leaf, Predicate, QueryOperator
from svc_query.configuration import QueryConfiguration
from svc_query.indexing import IndexSnapshot, IndexView, working
from svc_query.indexing.caches import Caches
from svc_query.testing.indexed_database import Indexed, Source
from svc_testing import ViewContract

__all__ = ["FIELD", "IndexTypeContract", "answers"]

FIELD = "value"
"""The field that is indexed."""

GREENLETS = 32
_LEAVES = 6
_CONFIGURATION = (".svc-config", "indexes.json")


def answers(
    snapshot: IndexSnapshot, operator: QueryOperator, leaves: list[Leaf], index_type: IndexType
) -> list[tuple[set[str], set[str]]]:
    """Returns for each leaf the paths that indexes find, verified, and those that match by its meaning."""
    found = []
    for leaf in leaves:
        matching: set[str] = set()
        real: set[str] = set()
        for index in snapshot.indexes(FIELD):
            if index.type.name == index_type.name:
                given = msgspec.structs.replace(leaf, index_options={index_type.name: index.options})
                predicate = operator.compile(given)
                matching |= _matching(snapshot, predicate, index)
        predicate = operator.compile(leaf)
        for document in snapshot.documents(snapshot.live()):
            values = snapshot.values(document, FIELD)
            if values and predicate.test_all(values) is not None:
                real.add("/".join(document.path))
        found.append((matching, real))
    return found


def _matching(snapshot: IndexSnapshot, predicate: Predicate, index: Any) -> set[str]:
    candidates = predicate.candidates({index.type.name: index.reader})
    candidates = snapshot.live().copy() if candidates is None else candidates & snapshot.live()
    tail = BitMap([document.id for document in snapshot.tail()])
    if index.tail is not None:
        in_tail = predicate.candidates({index.type.name: index.tail})
        tail = tail if in_tail is None else tail & in_tail
    matching = set()
    for document in snapshot.documents(candidates | tail):
        values = snapshot.values(document, FIELD)
        if values and predicate.test_all(values) is not None:
            matching.add("/".join(document.path))
    return matching


class IndexTypeContract(ViewContract):
    """Tests of an index type, with an operator that it answers.

    A subclass sets ``operator``, gives the fixture ``extension``, and makes values and leaves: such that some
    documents match and others don't. To the law of views the index is held with it: restarts at any point,
    torn writes and double deliveries give what a rebuild gives.

    Attributes:
        operator: an operator that needs this type alone.
        options: of the entry of ``indexes.json``.
        value_type: of the field.
    """

    operator: ClassVar[QueryOperator]
    options: ClassVar[Mapping[str, Any]] = {}
    value_type: ClassVar[str] = "auto"

    @pytest.fixture
    def extension(self) -> IndexType:
        """The type under test, made as the plugin makes it."""
        pytest.fail(f"{type(self).__name__} must give the fixture 'extension'.")

    def make_value(self, random: Random) -> Any:
        """Returns a value of the field, or a list of them, as JSON has it."""
        pytest.fail(f"{type(self).__name__} must make values.")

    def make_leaf(self, random: Random) -> Leaf:
        """Returns a leaf over ``FIELD`` that the operator takes."""
        pytest.fail(f"{type(self).__name__} must make leaves.")

    # -- what tests are made of ----------------------------------------------------------------

    @pytest.fixture(autouse=True)
    def small_flushes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Flushes after a few documents, so that a short history has several."""
        monkeypatch.setattr(working, "FLUSH_DOCUMENTS", 12)
        monkeypatch.setattr(working, "QUIET_SECONDS", 0.0)
        monkeypatch.setattr(working, "IDLE_FLUSH_DOCUMENTS", 6)
        monkeypatch.setattr("svc_testing.views.MAXIMUM_INTERRUPTIONS", 6)

    @pytest.fixture
    def source(self, extension: IndexType) -> Source:
        """The type is in use, and nothing else."""
        source = Source()
        source.types = {extension.name: extension}
        source.use()
        return source

    @pytest.fixture
    def view(self, source: Source, extension: IndexType) -> IndexView:
        """The view, with the type in use."""
        logger = logging.getLogger("svc_query.testing")
        context = PluginContext("query", QueryConfiguration(), None, logger, source)  # type: ignore[arg-type]
        self._view, self._extension = IndexView(context), extension
        return self._view

    @property
    def leaves(self) -> list[Leaf]:
        """Some leaves."""
        random = Random("leaves")
        return [
            msgspec.structs.replace(self.make_leaf(random), value_type=self.value_type)
            for _ in range(_LEAVES)
        ]

    def contents(self, storage: ViewStorage) -> object:
        """The answers to all leaves, which are as they should be."""
        snapshot = IndexSnapshot(storage, Caches(), self._view.extensions, 0)
        found = answers(snapshot, self.operator, self.leaves, self._extension)
        for matching, real in found:
            assert matching == real
        return sorted("/".join(path) for path, _ in snapshot.in_path_order(())), [one for one, _ in found]

    def configuration(self, extension: IndexType) -> bytes:
        """An ``indexes.json`` with the field."""
        entry = {
            "name": FIELD,
            "type": extension.name,
            "source": [FIELD] if self.value_type == "array" else [FIELD, ""],
            "value_type": self.value_type,
            **self.options,
        }
        return json.dumps({"glob": "**/*", "indexes": [entry]}).encode()

    def make_file(self, random: Random) -> bytes:
        """A file with values of the field."""
        value = self.make_value(random)
        if self.value_type != "array" and not isinstance(value, list):
            value = [value]
        return json.dumps({FIELD: value}).encode()

    def history(self, database: Database) -> Iterator[None]:
        """Files come, change, move, are copied and go."""
        random = Random("history")
        with database.transaction() as transaction:
            transaction.put(_CONFIGURATION, self.configuration(self._extension))
            for number in range(14):
                transaction.put(("a", f"{number}.json"), self.make_file(random), content_type=JSON)
        yield
        with database.transaction() as transaction:
            for number in range(0, 14, 3):
                transaction.put(("a", f"{number}.json"), self.make_file(random), content_type=JSON)
            transaction.delete(("a", "1.json"))
            transaction.move(("a", "2.json"), ("b", "moved.json"))
        yield
        with database.transaction() as transaction:
            transaction.copy(("a",), ("c", "d"))
            transaction.delete(("b",), recursive=True)
            transaction.put(("bad.json",), b"{", content_type=JSON)
        yield
        with database.transaction() as transaction:
            transaction.move(("c",), ("e",))
            transaction.delete(("a",), recursive=True)
            transaction.put(("odd.json",), json.dumps({FIELD: ODD}).encode(), content_type=JSON)
        yield

    # -- tests ---------------------------------------------------------------------------------

    def test_files_that_come_and_go_are_found(
        self, source: Source, extension: IndexType, tmp_path: FilePath
    ) -> None:
        """At any state, what the index finds is what matches; and so it is after a rebuild."""
        self._extension = extension
        indexed = Indexed(tmp_path / "followed.svcdb", source)
        last: object = None
        try:
            for _ in self.history(indexed.database):
                self.check(indexed)
                indexed.finish()
                last = self.check(indexed)
            indexed.reader.rebuild()
            indexed.finish()
            assert self.check(indexed) == last
        finally:
            indexed.close()

    def test_other_openings_go_on_where_one_stopped(
        self, source: Source, extension: IndexType, tmp_path: FilePath
    ) -> None:
        """A process that ended at any point is followed by another."""
        self._extension = extension
        path = tmp_path / "reopened.svcdb"
        indexed = Indexed(path, source)
        try:
            for number, _ in enumerate(self.history(indexed.database)):
                other = Indexed(path, source)
                try:
                    other.reader.catch_up()
                    for _ in range(number):
                        other.reader.work(should_stop=lambda: True)
                    self.check(other)
                finally:
                    other.close()
                self.check(indexed)
        finally:
            indexed.close()

    def test_many_greenlets_ask_while_files_change(
        self, source: Source, extension: IndexType, tmp_path: FilePath
    ) -> None:
        """Each sees one state, whatever the others and the writer do."""
        self._extension = extension
        indexed = Indexed(tmp_path / "shared.svcdb", source)
        try:

            def ask() -> None:
                def look(snapshot: IndexSnapshot) -> None:
                    for leaf in self.leaves[:2]:
                        gevent.sleep(0)
                        ((matching, real),) = answers(snapshot, self.operator, [leaf], extension)
                        gevent.sleep(0)
                        assert matching == real

                indexed.read(look)

            for _ in self.history(indexed.database):
                asking = [gevent.spawn(ask) for _ in range(GREENLETS)]
                gevent.sleep(0)
                indexed.reader.work(should_stop=lambda: True)
                gevent.joinall(asking, raise_error=True)
        finally:
            indexed.close()

    def check(self, indexed: Indexed) -> object:
        """Compares what the index finds with what matches, and returns it."""

        def look(snapshot: IndexSnapshot) -> object:
            found = answers(snapshot, self.operator, self.leaves, self._extension)
            for matching, real in found:
                assert matching == real
            return [matching for matching, _ in found]

        return indexed.read(look)


JSON = "application/json"
ODD = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    " ",
    "\x00",
    "\ud800",
    "a\u0301",
    "x" * 5_000,
    [],
    {},
    [1, "x"],
    {"a": 1},
]
