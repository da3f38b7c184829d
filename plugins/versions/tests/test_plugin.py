"""The plugin keeps the contract of all plugins, and its view that of views."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from svc.plugin import Database
from svc_testing import PluginContract, ViewContract
from svc_versions.ancestry import JumpsView


class TestVersionsPlugin(PluginContract):
    plugin_id = "versions"


class TestJumpsView(ViewContract):
    @pytest.fixture
    def view(self) -> JumpsView:
        return JumpsView()

    def history(self, database: Database) -> Iterator[None]:
        for number, _ in enumerate(super().history(database), 1):
            with database.transaction() as transaction:
                transaction.set_ref(f"snapshots/{number}", database.head().root)  # it may be collected else
            yield
        first = database.resolve_version(snapshot="1")
        with database.transaction() as transaction:
            transaction.set_ref("HEAD", first)
        yield
        with database.transaction() as transaction:
            transaction.set_ref("snapshots/one", first)
        yield
        with database.transaction() as transaction:
            transaction.set_ref("HEAD", database.resolve_version(snapshot="3"))
            transaction.put(("after",), b"x")
        yield
