"""The plugin, by the contracts of svc."""

from __future__ import annotations

from svc_hello.descriptor import PLUGIN
from svc_hello.operations import size_of

from svc.errors import NotFound
from svc_testing import OperationsContract, PluginContract


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestOperations(OperationsContract):
    plugin_id = PLUGIN.id

    def prepare(self, database):
        with database.transaction() as changes:
            changes.put(("books", "war"), b"peace")

    def story(self, call):
        size = call(size_of, ("books",))
        assert (size.files, size.bytes) == (1, 5)
        call.refused(NotFound, size_of, ("nothing",))
