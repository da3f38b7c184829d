"""The plugin, by the contracts of svc."""

from __future__ import annotations

import pytest
from svc_hello.descriptor import PLUGIN
from svc_hello.writes import WritesView, transactions_of

from svc_testing import PluginContract, ViewContract


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestWrites(ViewContract):
    @pytest.fixture
    def view(self):
        return WritesView()


def test_transactions_are_counted_by_author(database):
    for author in ("ann", "ann", "bob"):
        with database.transaction(actor=author) as changes:
            changes.put((author,), author.encode())
    assert [transactions_of(database, author) for author in ("ann", "bob", "eve")] == [2, 1, 0]
