"""Views that are another object for each database, bound to the settings of their plugin there."""

from __future__ import annotations

import pytest

from svc.database import Database, View, views
from svc.errors import InvalidInput, PluginError
from svc.plugins.context import make_context
from svc.plugins.lifecycle import bound_view
from svc_cli import open_database
from svc_testing import DistributionFactory


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "x.svcdb") as opened:
        yield opened


def commit(database, *names):
    with database.transaction() as transaction:
        for name in names:
            transaction.put((name,), name.encode())


def rows(storage):
    return [key.decode() for key, _ in storage.scan()]


class Bound(View):
    name = "test.bound"
    format = 1

    def __init__(self, context=None):
        self.context = context

    def bind(self, context):
        return Bound(context)

    def apply(self, commit, before, after, storage, start=0):
        storage.put(str(self.context.configuration).encode(), b"")


class Unbound(View):
    """A view that is the same object everywhere."""

    name = "test.unbound"
    format = 1

    def apply(self, commit, before, after, storage, start=0):
        """Keeps nothing."""


def test_a_view_is_bound_to_the_context_of_its_plugin(database):
    context = make_context("test", "settings", database)
    assert bound_view(Bound(), context).context is context
    unbound = Unbound()
    assert bound_view(unbound, context) is unbound


def test_what_is_bound_must_be_the_same_view(database):
    class Other(Bound):
        def bind(self, context):
            return Unbound()

    with pytest.raises(PluginError, match="not that view"):
        bound_view(Other(), make_context("test", None, database))


def test_another_object_goes_on_with_the_same_data(database):
    commit(database, "a")
    view = Bound()
    first, second = (bound_view(view, make_context("test", text, database)) for text in ("one", "two"))
    reader = database.register_view(first)
    assert reader.read(rows) == ["one"]
    assert database.register_view(second) is reader
    commit(database, "b")
    assert reader.read(rows) == ["one"]
    assert database.register_view(second, replace=True) is reader
    commit(database, "c")
    assert reader.read(rows) == ["one", "two"]


def test_another_object_finishes_what_the_first_has_begun(database, monkeypatch):
    class Slow(Bound):
        def bind(self, context):
            return Slow(context)

        def apply(self, commit, before, after, storage, start=0):
            for change in commit.transactions[0].changes[start:]:
                storage.put(f"{change.path[0]}-{self.context.configuration}".encode(), b"")
                yield

    monkeypatch.setattr(views, "TRANSACTION_SECONDS", 0.0)
    commit(database, "a", "b", "c")
    reader = database.register_view(Slow(make_context("test", "one", database)))
    turns = iter((False,))
    reader.catch_up(should_stop=lambda: next(turns, True))
    database.register_view(Slow(make_context("test", "two", database)), replace=True)
    assert reader.read(rows) == ["a-one", "b-two", "c-two"]


def test_a_view_of_other_data_takes_no_place(database):
    class Newer(Bound):
        format = 2

    database.register_view(Bound())
    with pytest.raises(InvalidInput, match=r"test\.bound"):
        database.register_view(Newer(), replace=True)


DESCRIPTOR = """
import msgspec

from svc.plugins import PluginDescriptor

class Settings(msgspec.Struct, frozen=True):
    word: str = "plain"

PLUGIN = PluginDescriptor(
    id="test.driver", version="1", summary="Drives words", api=(1, 1), implementation="svc_driver.plugin",
    families="svc_driver.api", configuration=Settings,
)
"""
API = """
from svc.plugins import Family, NamedRegistry, hookspec

WORDS = Family("words", "word", object)
FAMILIES = (WORDS,)

@hookspec
def svc_register_words(words: NamedRegistry[object]) -> None:
    "Adds words."
"""
DRIVER = """
from svc.plugin import View, hookimpl
from svc_driver.api import WORDS

class Words(View):
    name = "test.words"
    format = 1

    def __init__(self, context=None):
        self.context = context

    def bind(self, context):
        return Words(context)

    def apply(self, commit, before, after, storage, start=0):
        storage.put(self.context.configuration.word.encode(), b"")
        for name in self.context.extensions(WORDS):
            storage.put(name.encode(), b"")

@hookimpl
def svc_register_views(views):
    views.add(Words())
"""
EXTENSION = """
from svc.plugins import PluginDescriptor, hookimpl

PLUGIN = PluginDescriptor(
    id="test.extension", version="1", summary="Adds a word", api=(1, 1), implementation="svc_extension",
    extends=("test.driver:words",),
)

class Word:
    name = "added"

@hookimpl
def svc_register_words(words):
    words.add(Word())
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    distributions = DistributionFactory(tmp_path / "installed")
    distributions.install(
        "svc-driver",
        modules={"svc_driver.descriptor": DESCRIPTOR, "svc_driver.api": API, "svc_driver.plugin": DRIVER},
        entry_points={"test.driver": "svc_driver.descriptor:PLUGIN"},
    )
    distributions.install(
        "svc-extension",
        modules={"svc_extension": EXTENSION},
        entry_points={"test.extension": "svc_extension:PLUGIN"},
    )
    monkeypatch.setenv("SVC_PLUGINS", "test.driver,test.extension")
    yield
    distributions.close()


def test_a_command_and_a_server_bind_views_to_settings_and_extensions(installed, tmp_path):
    from svc.plugins import ActivePlugins, disable, enable, load_plugins, register_views

    plugins = load_plugins(["test.driver", "test.extension"])
    assert plugins.problems == ()
    with open_database(tmp_path / "x.svcdb", "test.driver", create=True) as database:
        assert database.view("test.words").read(rows) == ["added", "plain"]
    with Database(tmp_path / "x.svcdb") as database:
        register_views(database, plugins)
        database.view("test.words").rebuild()
        assert database.view("test.words").read(rows) == ["added", "plain"]
    with Database(tmp_path / "x.svcdb") as database:
        active = ActivePlugins(plugins, database)
        active.start()
        assert database.view("test.words").read(rows) == ["added", "plain"]
        enable(database, plugins, "test.driver", {"word": "other"})
        disable(database, plugins, "test.extension")
        active.current()
        database.view("test.words").rebuild()
        assert database.view("test.words").read(rows) == ["other"]
        active.stop()
