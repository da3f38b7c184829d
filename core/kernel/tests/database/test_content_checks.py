"""Files that must be of some form at their path are refused before they are committed, however they come."""

from __future__ import annotations

import threading
from io import BytesIO

import pytest

from svc.database import Database
from svc.database.content_checks import PathCheck
from svc.errors import Conflict, InvalidInput
from svc.plugins import ActivePlugins, ContentCheck, disable, enable, load_plugins
from svc.plugins.registries import make_registries
from svc_cli import open_database
from svc_testing import DistributionFactory

GOOD, BAD = b"good", b"bad"
PLACE = ("a", ".rules", "x.json")


@pytest.fixture
def asked():
    return []


@pytest.fixture
def database(tmp_path, asked):
    def check(path, content):
        asked.append((path, content))
        if content.startswith(BAD):
            raise InvalidInput("It is bad.", field="x")

    with Database(tmp_path / "x.svcdb") as opened:
        opened.use_content_checks([PathCheck((".rules", "x.json"), 300_000, check)])
        yield opened


def refused(database, write, ref="HEAD"):
    """Runs operations that must be refused; returns the error's details."""
    before = database.head()
    with pytest.raises(InvalidInput, match="It is bad"), database.transaction(ref=ref) as transaction:
        write(transaction)
    with pytest.raises(InvalidInput) as caught, database.transaction(ref=ref) as transaction:
        write(transaction)
    assert database.head() == before
    return caught.value.details


def test_a_put_is_refused_and_what_was_there_stays(database, asked):
    with database.transaction() as transaction:
        transaction.put(PLACE, GOOD)
    details = refused(database, lambda transaction: transaction.put(PLACE, BAD))
    assert details == {"field": "x", "path": "/a/.rules/x.json", "operation": 0}
    assert asked[0] == (PLACE, GOOD)
    version = database.at()
    assert b"".join(version.read(version.get(PLACE))) == GOOD


def test_other_paths_are_never_looked_at(database, asked):
    with database.transaction() as transaction:
        for path in (("x.json",), (".rules", "y.json"), ("rules", "x.json"), (".rules", "x.json", "z")):
            transaction.put(path, BAD)
        transaction.mkdir(("b", ".rules"))
        transaction.put_system(("kept", ".rules", "x.json"), BAD)
        transaction.delete((".rules",), recursive=True)
    assert asked == []


def test_the_suffix_matches_at_the_root_too(database):
    refused(database, lambda transaction: transaction.put((".rules", "x.json"), BAD))


@pytest.mark.parametrize("size", [3, 5_000, 70_000, 300_000])
@pytest.mark.parametrize("compresses", [True, False])
@pytest.mark.parametrize("way", ["bytes", "stored", "stream", "known", "ahead"])
def test_all_of_a_content_is_seen_whatever_its_size_and_wherever_it_is(
    database, asked, size, compresses, way, random_bytes
):
    content = BAD + (b"x" * (size - 3) if compresses else random_bytes(size - 3))

    def put(transaction):
        if way == "ahead":
            for number in range(40):
                transaction.put(("other", str(number)), random_bytes(60_000))
        if way in ("bytes", "known", "ahead"):
            transaction.put(PLACE, content)
        else:
            is_stream = way == "stream"
            transaction.put(
                PLACE, database.store(BytesIO(content)) if is_stream else database.store_bytes(content)
            )
        if way == "ahead":
            for number in range(40, 80):
                transaction.put(("other", str(number)), random_bytes(60_000))

    if way == "known":
        with database.transaction() as transaction:
            transaction.put(("elsewhere",), content)
    refused(database, put)
    assert asked[0] == (PLACE, content)


@pytest.fixture
def random_bytes():
    from random import Random

    return Random(1).randbytes


def test_an_empty_file_is_checked_and_one_too_large_is_refused_unread(database, asked):
    with database.transaction() as transaction:
        transaction.put(PLACE, b"")
    assert asked == [(PLACE, b"")]
    with (
        pytest.raises(InvalidInput, match="at most 300,000") as caught,
        database.transaction() as transaction,
    ):
        transaction.put(PLACE, b"x" * 300_001)
    assert (caught.value.details["limit"], caught.value.details["path"]) == (300_000, "/a/.rules/x.json")
    assert len(asked) == 1


def test_one_bad_file_of_a_batch_refuses_the_batch_and_is_named(database):
    def write(transaction):
        transaction.put(("fine",), b"1")
        transaction.put(PLACE, BAD)

    assert refused(database, write)["operation"] == 1
    assert database.at().get(("fine",)) is None


def test_files_that_come_from_elsewhere_are_checked_at_their_new_path(database, asked):
    with database.transaction() as transaction:
        transaction.put(("bad",), BAD)
        transaction.put(("d", "bad"), BAD)
        transaction.put(("good",), GOOD)
        transaction.link(("link",), "/bad")
    entry = database.at().get(("bad",))
    refused(database, lambda transaction: transaction.move(("bad",), PLACE))
    refused(database, lambda transaction: transaction.copy(("d", "bad"), PLACE))
    refused(database, lambda transaction: transaction.put_entry(PLACE, entry))
    asked.clear()
    with database.transaction() as transaction:
        transaction.copy(("good",), PLACE)
        transaction.copy(("link",), ("b", *PLACE))
    assert asked == [(PLACE, GOOD)]


def test_files_that_come_from_the_same_transaction_are_found_where_they_are(database):
    with database.transaction() as transaction:
        transaction.put(("base", "bad"), BAD)
    directory = database.at().get(("base",))

    def write(transaction):
        transaction.put(("one", "deep", "file"), BAD)
        transaction.move(("one",), ("two",))
        transaction.copy(("two", "deep"), ("three",))
        transaction.copy(("three", "file"), PLACE)

    def restored(transaction):
        transaction.put_entry(("again",), directory)
        transaction.mkdir(("again", "empty"))
        transaction.move(("again", "bad"), PLACE)

    assert refused(database, write)["operation"] == 3
    assert refused(database, restored)["operation"] == 2
    with pytest.raises(Exception, match="Nothing is at"), database.transaction() as transaction:
        transaction.move(("base", "bad"), ("gone",))
        transaction.copy(("base", "bad"), PLACE)


def test_forks_are_checked_as_head_is(database):
    with database.transaction() as transaction:
        transaction.put(("bad",), BAD)
    with database.transaction() as transaction:
        transaction.copy_ref("HEAD", "forks/draft")
    with database.transaction() as transaction:
        transaction.delete(("bad",))
    refused(database, lambda transaction: transaction.move(("bad",), PLACE), ref="forks/draft")


def test_a_ref_that_moves_in_the_transaction_is_where_it_moves_to(database):
    with database.transaction() as transaction:
        transaction.put(("bad",), BAD)
    first = database.head().root
    with database.transaction() as transaction:
        transaction.delete(("bad",))

    def write(transaction):
        transaction.set_ref("HEAD", first)
        transaction.move(("bad",), PLACE)

    refused(database, write)


def test_a_source_that_changes_behind_the_check_is_not_moved(tmp_path):
    seen = threading.Event()

    with Database(tmp_path / "x.svcdb") as database, Database(tmp_path / "x.svcdb") as other:

        def check(path, content):
            with other.transaction() as transaction:
                transaction.put(("source",), BAD)
            seen.set()

        database.use_content_checks([PathCheck(PLACE[-1:], 100, check)])
        with other.transaction() as transaction:
            transaction.put(("source",), GOOD)
        with pytest.raises(Conflict, match="while it was checked"), database.transaction() as transaction:
            transaction.move(("source",), PLACE)
        assert seen.is_set()
        assert database.at().get(PLACE) is None


# -- by plugins ----------------------------------------------------------------------------------

PLUGIN = """
import msgspec

from svc.errors import InvalidInput
from svc.plugins import ContentCheck, PluginDescriptor, hookimpl

class Settings(msgspec.Struct, frozen=True):
    word: str = "plain"

PLUGIN = PluginDescriptor("test.rules", "1", "Checks", (1, 1), "svc_rules", configuration=Settings)

class Rules(ContentCheck):
    name = "test.rules"
    suffixes = ((".rules", "x.json"), (".rules", "y.json"))
    maximum_size = 100

    def check(self, path, content, context):
        if content.decode() != context.configuration.word:
            raise InvalidInput("It is bad.")
        assert context.database.head() is not None

@hookimpl
def svc_register_content_checks(content_checks):
    content_checks.add(Rules())
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    distributions = DistributionFactory(tmp_path / "installed")
    distributions.install(
        "svc-rules", modules={"svc_rules": PLUGIN}, entry_points={"test.rules": "svc_rules:PLUGIN"}
    )
    monkeypatch.setenv("SVC_PLUGINS", "test.rules")
    yield load_plugins(["test.rules"])
    distributions.close()


def put(database, content):
    with database.transaction() as transaction:
        transaction.put((".rules", "y.json"), content)


def test_checks_hold_while_their_plugin_is_enabled_with_the_settings_that_it_has(installed, tmp_path):
    with Database(tmp_path / "x.svcdb") as database:
        put(database, b"anything")
        enable(database, installed, "test.rules")
        active = ActivePlugins(installed, database)
        active.start()
        with pytest.raises(InvalidInput):
            put(database, b"anything")
        put(database, b"plain")
        enable(database, installed, "test.rules", {"word": "other"})
        active.current()
        with pytest.raises(InvalidInput):
            put(database, b"plain")
        put(database, b"other")
        disable(database, installed, "test.rules")
        active.current()
        put(database, b"anything")
        active.stop()


def test_commands_check_too(installed, tmp_path):
    with Database(tmp_path / "x.svcdb") as database:
        enable(database, installed, "test.rules", {"word": "other"})
    for plugin_id in (None, "test.rules"):
        with open_database(tmp_path / "x.svcdb", plugin_id) as database:
            with pytest.raises(InvalidInput):
                put(database, b"plain")
            put(database, b"other")


@pytest.mark.parametrize(
    ("suffixes", "size"),
    [((), 1), ("x", 1), ((("a/b",),), 1), (((),), 1), ((("a",),), None), ((("a",),), -1)],
)
def test_a_check_that_does_not_say_what_it_checks_is_refused(suffixes, size):
    class Wrong(ContentCheck):
        name = "test.wrong"

        def check(self, path, content, context):
            pass

    wrong = Wrong()
    wrong.suffixes, wrong.maximum_size = suffixes, size
    registries = make_registries()
    with pytest.raises(Exception, match="is not a content check"), registries.adding("test"):
        registries.content_checks.add(wrong)
