"""A change of ``indexes.json`` enqueues a task for its directory: once, for metadata where that will do."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from svc_query.api import reindex_of
from svc_query.testing.indexed_database import Indexed, Source
from svc_task_reindex import following
from svc_task_reindex.following import ConfigurationsJob, directories_to_index

from .conftest import FIELD  # noqa: TID252

VIRTUAL = {"name": "@filename", "type": "exact"}


@dataclass
class Job:
    database: Any
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("test"))
    configuration: Any = None
    plugin_id: str = "task.reindex"


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(following, "enqueue", lambda database, kind, args, **more: found.append(dict(args)))
    return found


def look(indexed: Indexed) -> None:
    indexed.finish()
    ConfigurationsJob().run(Job(indexed.database))  # type: ignore[arg-type]


def test_each_change_makes_one_task(indexed: Indexed, enqueued: list[dict[str, Any]]) -> None:
    indexed.put({"/d/a.json": {}})
    look(indexed)
    assert enqueued == []
    indexed.configure("/d", FIELD)
    look(indexed)
    assert enqueued == [{"path": "/d", "metadata_only": False}]
    look(indexed)
    indexed.put({"/d/b.json": {}})
    look(indexed)
    assert len(enqueued) == 1, "nothing has changed since"
    indexed.configure("/d", VIRTUAL)
    look(indexed)
    assert enqueued[1:] == [{"path": "/d", "metadata_only": True}]
    indexed.put({"/d/.svc-config/indexes.json": None})
    look(indexed)
    assert enqueued[2:] == [{"path": "/d", "metadata_only": False}]


def test_a_directory_with_many_files_gets_one_too(indexed: Indexed, enqueued: list[dict[str, Any]]) -> None:
    indexed.put({f"/d/{number}.json": {} for number in range(700)})
    indexed.configure("", FIELD, VIRTUAL)
    look(indexed)
    assert enqueued == [{"path": "/", "metadata_only": False}]


def test_one_that_is_gone_by_then_gets_none(indexed: Indexed, enqueued: list[dict[str, Any]]) -> None:
    indexed.configure("/d", FIELD)
    indexed.put({"/d": None})
    look(indexed)
    assert enqueued == []
    assert reindex_of(indexed.database).configured() == {}


def test_what_could_not_be_enqueued_is_enqueued_later(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **more: Any) -> None:
        raise RuntimeError("the queue is full")

    indexed.configure("/d", FIELD)
    indexed.finish()
    monkeypatch.setattr(following, "enqueue", refuse)
    with pytest.raises(RuntimeError):
        look(indexed)
    assert list(reindex_of(indexed.database).configured()) == [("d",)]


def test_a_change_while_others_are_forgotten_is_not_forgotten(indexed: Indexed) -> None:
    indexed.configure("/d", FIELD)
    indexed.finish()
    index = reindex_of(indexed.database)
    seen = index.configured()
    indexed.configure("/d", VIRTUAL)
    indexed.finish()
    index.forget_configured(seen)
    assert list(index.configured()) == [("d",)]


def test_directories_below_others_come_with_them_and_very_many_as_one() -> None:
    assert directories_to_index([("a", "b"), ("a",), ("c",)]) == [("a",), ("c",)]
    assert directories_to_index([(), ("c",)]) == [()]
    assert directories_to_index([("a", str(number)) for number in range(30)]) == [("a",)]
    assert directories_to_index([(str(number),) for number in range(30)]) == [()]


def test_what_was_configured_before_the_index_began_counts(
    tmp_path: Path, source: Source, enqueued: list[dict[str, Any]]
) -> None:
    begun = Indexed(tmp_path / "begun.svcdb", source)
    begun.configure("/d", FIELD)
    look(begun)
    begun.close()
    assert enqueued == [{"path": "/d", "metadata_only": False}]
