"""The plugin as its users meet it, and the contracts of svc."""

from __future__ import annotations

import pytest
from svc_hello.activity import ActivityView, transactions_of
from svc_hello.descriptor import PLUGIN
from svc_hello.greeting import greet
from svc_hello.operations import greet_by_name

from svc.errors import InvalidInput
from svc_testing import OperationsContract, PluginContract, ViewContract


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestOperations(OperationsContract):
    plugin_id = PLUGIN.id

    def story(self, call):
        assert call(greet_by_name, "World").greeting == "Hello, World!"
        call.refused(InvalidInput, greet_by_name, "x" * 101)


class TestActivityView(ViewContract):
    @pytest.fixture
    def view(self):
        return ActivityView()


def test_a_greeting_has_greeting_and_name():
    assert greet("Hello", "World") == "Hello, World!"


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\nb"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(InvalidInput):
        greet("Hello", name)


def test_the_view_counts_transactions_by_author(database):
    for author in ("ann", "ann", "bob"):
        with database.transaction(actor=author) as transaction:
            transaction.mkdir((author,), exist_ok=True)
            transaction.put((author, "file"), author.encode(), content_type="text/plain")
    assert [transactions_of(database, author) for author in ("ann", "bob", "eve")] == [2, 1, 0]


def test_the_command_greets_in_the_words_of_the_database(run_svc, database_path, database):
    options = ("-D", database_path)
    assert run_svc("hello", "World", *options).stdout == "Hello, World!\n"
    assert run_svc("plugins", "config", PLUGIN.id, "--set", "greeting=Ahoy", *options).exit_code == 0
    assert run_svc("hello", "World", "--json", *options).json() == {
        "greeting": "Ahoy, World!",
        "transactions": 0,
    }


def test_the_route_greets_and_refuses_over_http(server):
    assert server.get("/hello/World").json()["greeting"] == "Hello, World!"
    refused = server.get("/hello/" + "x" * 101)
    assert (refused.status, refused.json()["field"]) == (400, "name")


def test_the_route_is_gone_once_the_plugin_is_disabled(server):
    assert server.get("/hello/World").status == 200
    assert server.request("POST", f"/system/plugins/{PLUGIN.id}/disable").status == 200
    assert server.get("/hello/World").status == 404
