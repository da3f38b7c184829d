"""The contract of an index type made of terms, together with its operators, as tests.

class TestMine(TermIndexTypeContract):
    plugin_id = "index.mine"
    operators = (MyOperator(),)

    @pytest.fixture
    def extension(self):
        return MyIndexType()

    def leaves(self): ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from svc.errors import InvalidInput
from svc_query.api import INDEX_TYPES, Leaf, Predicate, QueryOperator, TermIndexType, Value
from svc_query.segments import TermIndexReader, TermIndexWriter
from svc_testing import ExtensionContract

__all__ = ["TermIndexTypeContract", "any_values", "texts"]

EXAMPLES = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ODD_VALUES: tuple[Value, ...] = (
    None, True, False, 0, -0.0, -1, 2**53 + 1, -(2**200), 10**3_000, 1.5, 5e-324, float("inf"), float("-inf"),
    float("nan"), "", " ", "\x00", "\ud800", "a\u0301", "\U0010ffff", "ß", "İ", "x" * 5_000, "ж" * 3_000,
    (), (1.0, 2.0),
)  # fmt: skip
WORDS = (
    "Tolstoi", "tolstoy", "TOLSTOJ", "Müller", "Mueller", "Straße", "STRASSE", "война", "мир", "Ἀχιλλεύς",
    "戦争と平和", "हिन्दी", "שלום", "مرحبا",
    "e\u0301t\u00e9", "한국어", "ﬁne", "naïve", "o'clock", "foo_bar", "42", "x", "🙂",
)  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    """Texts of all scripts, some of which resemble each other."""
    some = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
    anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    return st.one_of(some, some, anything, st.text("ab \u0301A", max_size=6))


def any_values() -> st.SearchStrategy[Value]:
    """Values of all kinds that a field may have, close to each other and far apart."""
    numbers = st.one_of(
        st.integers(-3, 3),
        st.integers(),
        st.integers(2**53 - 2, 2**53 + 2),
        st.integers(-(2**300), 2**300),
        st.floats(allow_nan=False),
        st.sampled_from([0.0, -0.0, 0.5, -1.5, 2.0, float(2**53)]),
    )
    return st.one_of(texts(), numbers, st.booleans(), st.none(), st.sampled_from(ODD_VALUES))


class TermIndexTypeContract(ExtensionContract):
    """Tests of an index type made of terms, and of the operators that it answers.

    A subclass sets ``plugin_id`` and ``operators``, gives the fixture ``extension``, and overrides
    ``leaves``; ``values`` too, where it is made for values that are not among ``any_values``.

    Attributes:
        operators: the operators that need this type alone.
        entries: options of entries of ``indexes.json`` to test with.
        bad_entries: options that ``normalize`` must refuse.
        bad_leaves: leaves that ``compile`` must refuse.
    """

    family = INDEX_TYPES
    operators: ClassVar[tuple[QueryOperator, ...]]
    entries: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    bad_entries: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    bad_leaves: ClassVar[tuple[Leaf, ...]] = ()

    def values(self) -> st.SearchStrategy[Value]:
        """Values of documents; override it."""
        return any_values()

    def leaves(self) -> st.SearchStrategy[Leaf]:
        """Leaves for the operators, such that some documents match and others don't; override it."""
        pytest.fail(f"{type(self).__name__} must give leaves for its operators.")

    def test_the_index_gives_every_document_that_matches(self, extension: TermIndexType) -> None:
        """Candidates hold what ``test_all`` accepts; where they are certain, nothing else."""
        operators = {operator.name: operator for operator in self.operators}
        documents = st.lists(st.lists(self.values(), min_size=1, max_size=3), max_size=12)

        @EXAMPLES
        @given(
            documents,
            st.lists(self.leaves(), min_size=1, max_size=4),
            st.sampled_from(self.entries),
            st.integers(1, 4),
        )
        def check(
            documents: list[list[Value]], leaves: list[Leaf], entry: Mapping[str, Any], flushes: int
        ) -> None:
            options = extension.normalize(entry)
            with TemporaryDirectory() as directory:
                reader = index_documents(FilePath(directory), extension, options, documents, flushes)
                try:
                    for leaf in leaves:
                        known = msgspec.structs.replace(leaf, index_options={extension.name: options})
                        self.check_leaf(extension, reader, operators[leaf.op].compile(known), documents)
                finally:
                    reader.close()

        check()

    @staticmethod
    def check_leaf(
        extension: TermIndexType,
        reader: TermIndexReader,
        predicate: Predicate,
        documents: Sequence[Sequence[Value]],
    ) -> None:
        """Compares what one predicate says of documents with what the index gives."""
        scores = {number: predicate.test_all(values) for number, values in enumerate(documents)}
        matching = {number for number, score in scores.items() if score is not None}
        for score in scores.values():
            assert score is None or 0 < score <= 1
        if not predicate.scored:
            assert {scores[number] for number in matching} <= {1.0}
        indexes = {extension.name: reader}
        estimate = predicate.estimate(indexes)
        found = predicate.candidates(indexes)
        if found is None:
            assert estimate is None
            return
        assert matching <= set(found)
        assert estimate is not None
        assert estimate >= len(found)
        if predicate.certain:
            assert matching == set(found)
            assert all(scores[number] == 1.0 for number in matching)
        members = set(found)
        found.clear()
        again = predicate.candidates(indexes)
        assert again is not None
        assert set(again) == members

    def test_a_predicate_finds_no_more_than_all(self, extension: TermIndexType) -> None:
        """An index without documents gives none."""
        with TemporaryDirectory() as directory:
            reader = index_documents(FilePath(directory), extension, extension.normalize({}), [], 1)
            leaves = self.leaves()

            @settings(EXAMPLES, max_examples=10)
            @given(leaves)
            def check(leaf: Leaf) -> None:
                operator = next(operator for operator in self.operators if operator.name == leaf.op)
                found = operator.compile(leaf).candidates({extension.name: reader})
                assert found is None or found == BitMap()

            check()

    def test_terms_of_any_value(self, extension: TermIndexType) -> None:
        """Every value has terms, or none, and always the same."""
        for entry in self.entries:
            options = extension.normalize(entry)
            for value in ODD_VALUES:
                terms = set(extension.terms(value, options))
                assert all(isinstance(term, bytes) for term in terms)
                assert terms == set(extension.terms(value, options))

    def test_options_are_filled_in_once(self, extension: TermIndexType) -> None:
        """What ``normalize`` returned names the data: it stays the same when it is normalized again."""
        for entry in self.entries:
            options = extension.normalize(entry)
            assert set(entry) <= set(extension.options)
            assert extension.normalize(options) == options
            assert msgspec.json.decode(msgspec.json.encode(options)) == options

    def test_bad_options_are_refused(self, extension: TermIndexType) -> None:
        """An entry that can't be is refused in words, naming the member."""
        for entry in self.bad_entries:
            with pytest.raises(InvalidInput) as caught:
                extension.normalize(entry)
            assert caught.value.details["field"] in entry

    def test_bad_leaves_are_refused(self, extension: TermIndexType) -> None:
        """A leaf that can't be is refused in words, naming the field and the member."""
        operators = {operator.name: operator for operator in self.operators}
        for leaf in self.bad_leaves:
            with pytest.raises(InvalidInput) as caught:
                operators[leaf.op].compile(leaf)
            assert caught.value.details["field"] in {"value", *operators[leaf.op].options}
            assert leaf.field in caught.value.message


def index_documents(
    directory: FilePath,
    index: TermIndexType,
    options: Mapping[str, Any],
    documents: Sequence[Sequence[Value]],
    flushes: int,
) -> TermIndexReader:
    """Returns a reader of an index of some documents, numbered from 0, in several segments."""
    writer = TermIndexWriter(directory, None, ordered=index.ordered)
    for number, values in enumerate(documents):
        writer.add(number, {term for value in values for term in index.terms(value, options)})
        if number % flushes == flushes - 1:
            writer.flush()
    return TermIndexReader(directory, writer.flush(), ordered=index.ordered)
