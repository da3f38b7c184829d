"""Whoever writes configurations makes only so many indexes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from svc_query.index_configuration import MAXIMUM_CONFIGURATION_BYTES
from svc_query.indexing import INDEX_VIEW, index_status
from svc_query.indexing.checking import IndexesCheck
from svc_query.testing.indexed_database import Indexed

from svc.errors import InvalidInput


def configuration(first: int, count: int) -> bytes:
    fields = [{"name": f"f{number}", "type": "exact"} for number in range(first, first + count)]
    return json.dumps({"glob": "**/*", "indexes": fields}).encode()


def test_a_file_that_would_make_too_many_is_refused(open_index: Callable[..., Indexed]) -> None:
    indexed = open_index(maximum_indexes=40)
    indexed.put({"/a/.svc-config/indexes.json": configuration(0, 15), "/a/x.json": {"f0": 1}})
    indexed.finish()
    check, context = IndexesCheck(), indexed.context
    assert len(configuration(0, 256)) < MAXIMUM_CONFIGURATION_BYTES
    check.check(("b", ".svc-config", "indexes.json"), configuration(0, 15), context)
    with pytest.raises(InvalidInput, match="may have 40") as refused:
        check.check(("b", ".svc-config", "indexes.json"), configuration(15, 25), context)
    assert refused.value.details["limit"] == 40


def test_what_is_beyond_rests_and_the_status_says_so(open_index: Callable[..., Indexed]) -> None:
    indexed = open_index(maximum_indexes=20)
    indexed.put({"/a/.svc-config/indexes.json": configuration(0, 30), "/a/x.json": {"f0": 1, "f29": 2}})
    indexed.finish()
    status = indexed.read(lambda snapshot: index_status(snapshot, (), None, 1000))
    resting = [one["field"] for one in status["indexes"] if "no more" in one.get("problem", "")]
    assert len(status["indexes"]) - len(resting) <= 20
    assert "f29" in resting
    assert "f0" not in resting
    assert indexed.database.view(INDEX_VIEW).failure() is None
