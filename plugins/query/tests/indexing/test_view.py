"""The view keeps the law of views: restarts, torn writes and double deliveries give what a rebuild gives."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from svc_query.configuration import QueryConfiguration
from svc_query.indexing import IndexSnapshot, IndexView, working
from svc_query.indexing.caches import Caches
from svc_query.testing.indexed_database import Source, contents_of

from svc.plugin import Database, PluginContext, ViewStorage
from svc_testing import ViewContract

FEW = b'{"glob": "**/*", "indexes": [{"name": "@size", "type": "exact"}]}'
"""Few indexes are few files to be copied for each trial."""

CONFIGURATION = b'{"glob": "**/*", "indexes": [{"name": "title", "type": ["exact", "names"]}]}'


@pytest.fixture
def small_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "IDLE_FLUSH_DOCUMENTS", 6)
    monkeypatch.setattr(working, "FLUSH_DOCUMENTS", 12)
    monkeypatch.setattr(working, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr("svc_testing.views.MAXIMUM_INTERRUPTIONS", 6)


@pytest.mark.usefixtures("small_flushes")
class TestView(ViewContract):
    @pytest.fixture
    def view(self) -> IndexView:
        context: Any = PluginContext(
            "query",
            QueryConfiguration(),
            None,
            logging.getLogger("test"),
            Source(),  # type: ignore[arg-type]
        )
        self._view = IndexView(context)
        return self._view

    def contents(self, storage: ViewStorage) -> object:
        return contents_of(IndexSnapshot(storage, Caches(), self._view.extensions, 0))

    def history(self, database: Database) -> Iterator[None]:
        with database.transaction() as transaction:
            transaction.put((".svc-config", "indexes.json"), FEW)
        yield
        yield from super().history(database)
        with database.transaction() as transaction:
            transaction.put(("a", ".svc-config", "indexes.json"), CONFIGURATION)
            transaction.put(("a", "1.json"), b'{"title": "one"}', content_type="application/json")
        yield
        with database.transaction() as transaction:
            transaction.move(("a",), ("z",))
            transaction.put(("z", "2.json"), b'{"title": "two"}', content_type="application/json")
        yield
        with database.transaction() as transaction:
            transaction.delete(("z", ".svc-config"), recursive=True)
            for number in range(9):
                transaction.put(("many", f"{number}.txt"), b"many")
        yield
