"""The index type and its operator, by the contract of queries, and beside brute force."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from pyroaring import BitMap
from svc_index_vector.descriptor import PLUGIN
from svc_index_vector.index_type import VectorIndexType
from svc_index_vector.measures import scores_of
from svc_index_vector.operator import NearestOperator
from svc_query.api import QUERY_OPERATORS, IndexDocument, Leaf
from svc_query.testing.library import LibraryIndexTypeContract

from svc.errors import CorruptRecord
from svc_testing import ExtensionContract, PluginContract

DIMENSIONS = 5


def nearest(value, **options) -> Leaf:
    return Leaf(field="embedding", op="nearest", value=value, options=options, value_type="array")


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestNearestOperator(ExtensionContract):
    plugin_id = PLUGIN.id
    family = QUERY_OPERATORS

    @pytest.fixture
    def extension(self):
        return NearestOperator()


class TestVector(LibraryIndexTypeContract):
    plugin_id = PLUGIN.id
    operator = NearestOperator()
    options: ClassVar = {"dimensions": DIMENSIONS}
    bad_options = (
        {"dimensions": 0}, {"dimensions": 5000}, {"dimensions": "5"}, {"dimensions": True},
        {"dimensions": 3, "metric": "x"}, {"dimensions": 3, "metric": []},
    )  # fmt: skip
    bad_leaves = (
        nearest(None), nearest("x"), nearest([]), nearest([1] * 4), nearest([1, 2, 3, 4, "5"]),
        nearest([1, 2, 3, 4, True]), nearest([1, 2, 3, 4, float("nan")]), nearest([1] * 5, k=0),
        nearest([1] * 5, k="x"), nearest([1, 2, 3, 4, 1e300]),
    )  # fmt: skip
    tolerance = 1e-6

    @pytest.fixture
    def extension(self):
        return VectorIndexType()

    def make_values(self, random):
        lengths = [DIMENSIONS] * random.choice([1, 1, 2]) + [3] * random.choice([0, 1])
        return [tuple(random.choice([0.0, 1.0, random.gauss(0, 1)]) for _ in range(size)) for size in lengths]

    def make_leaf(self, random):
        return nearest([random.gauss(0, 1) for _ in range(DIMENSIONS)])


class TestDistance(TestVector):
    options: ClassVar = {"dimensions": DIMENSIONS, "metric": "l2"}


class TestInnerProduct(TestVector):
    options: ClassVar = {"dimensions": DIMENSIONS, "metric": "ip"}


# -- a large one -----------------------------------------------------------------------------------

COUNT = 9_000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """An index with a graph, the vectors that are in it, and their paths."""
    directory = tmp_path_factory.mktemp("index")
    kind = VectorIndexType()
    options = kind.normalize({"dimensions": 16, "metric": "l2"})
    vectors = np.random.default_rng(5).normal(size=(COUNT, 16)).astype(np.float32)
    documents = [
        IndexDocument(
            number, (("rare" if number % 100 == 0 else f"d{number % 7}"), f"{number}"), [tuple(row)]
        )
        for number, row in enumerate(vectors.tolist())
    ]
    writer = kind.open_writer(directory, options, None)
    writer.add(documents)
    state = writer.flush(BitMap())
    writer.close()
    return kind.open_reader(directory, options, state), vectors, options


def asked(vector, options, **leaf_options):
    leaf = nearest(vector.tolist(), **leaf_options)
    leaf = Leaf(
        **{
            **{name: getattr(leaf, name) for name in leaf.__struct_fields__},
            "index_options": {"vector": options},
        }
    )
    return NearestOperator().compile(leaf)


def test_a_graph_finds_nearly_all_that_brute_force_does(large):
    reader, vectors, options = large
    common = 0
    for query in np.random.default_rng(6).normal(size=(30, 16)).astype(np.float32):
        found = asked(query, options).best({"vector": reader}, 10)
        scores = scores_of("l2", query, vectors)
        wanted = np.argsort(-scores)[:10].tolist()
        common += len(set(wanted) & {number for number, _ in found})
        assert all(score == pytest.approx(scores[number]) for number, score in found)
    assert common >= 0.9 * 300


def test_below_and_k_and_any_limit(large):
    reader, vectors, options = large
    indexes = {"vector": reader}
    query = vectors[77]
    assert asked(query, options).best(indexes, 1)[0] == (77, 1.0)
    scores = scores_of("l2", query, vectors)
    rare = [number for number, _ in asked(query, options).best(indexes, 5, below=[("rare",)])]
    assert rare == sorted(range(0, COUNT, 100), key=lambda number: -scores[number])[:5]
    often = asked(query, options).best(indexes, 20, below=[(f"d{one}",) for one in range(7)])
    assert len(often) == 20
    assert not {number for number, _ in often} & set(range(0, COUNT, 100))
    assert [n for n, _ in asked(query, options).best(indexes, 5, below=[("rare", "300")])] == [300]
    everything = asked(query, options).best(indexes, COUNT)
    assert [number for number, _ in everything] == np.lexsort((np.arange(COUNT), -scores)).tolist()
    some = asked(query, options, k=7)
    assert len(some.candidates(indexes)) == len(some.best(indexes, 100)) == some.estimate(indexes) == 7


def test_a_state_that_is_none_is_told(tmp_path):
    with pytest.raises(CorruptRecord):
        VectorIndexType().open_reader(tmp_path, {"dimensions": 2, "metric": "l2"}, b"nonsense")


def test_segments_become_few(tmp_path):
    kind = VectorIndexType()
    options = kind.normalize({"dimensions": 2})
    state, dead = None, BitMap()
    for turn in range(40):
        writer = kind.open_writer(tmp_path, options, state)
        writer.add([IndexDocument(turn * 10 + n, ("x",), [(float(n), 1.0)]) for n in range(10)])
        state = writer.flush(dead)
        writer.close()
        dead |= BitMap(range(turn * 10, turn * 10 + 5))
    reader = kind.open_reader(tmp_path, options, state)
    assert len({file.name.partition(".")[0] for file in tmp_path.iterdir()}) < 30
    assert set(range(395, 400)) <= set(reader.documents())
    assert len(reader.documents()) < 400
