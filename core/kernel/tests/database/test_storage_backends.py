"""A database lies on whatever medium its URL names: the backends that are passed in open it."""

from __future__ import annotations

import io

import pytest
from click.testing import CliRunner

from svc.database import Database
from svc.errors import DatabaseNotFound, Forbidden, InvalidInput, SvcError, UsageError
from svc.log import LocalFileBackend, Log, locate, shown_location
from svc_cli.program import root
from svc_testing import MEMORY_BACKENDS, DistributionFactory, forget_memory, install_memory_storage


@pytest.fixture
def url(tmp_path):
    yield f"mem://{tmp_path.name}"
    forget_memory(tmp_path.name)


def put(database, path, content):
    with database.transaction() as transaction:
        transaction.put(path, database.store_bytes(content))


def content(version, name):
    return b"".join(version.read(version.get((name,))))


def test_a_database_in_memory_keeps_its_versions_as_long_as_the_process_lives(url):
    with Database(url, backends=MEMORY_BACKENDS) as database:
        put(database, ("a",), b"one")
        first = database.head().root
        put(database, ("a",), b"two")
        large = bytes(range(256)) * 4096
        with database.transaction() as transaction:
            transaction.put(("large",), database.store(io.BytesIO(large)))
        assert database.location == url
    with Database(url, backends=MEMORY_BACKENDS, create=False) as again:
        assert again.recovered_bytes == 0
        assert content(again.at(), "a") == b"two"
        assert content(again.at(first), "a") == b"one"
        assert content(again.at(), "large") == large
        assert again.head().sequence == 3


def test_openings_of_one_name_share_one_log(url):
    with (
        Database(url, backends=MEMORY_BACKENDS) as one,
        Database(url, backends=MEMORY_BACKENDS) as other,
        Database(url, backends=MEMORY_BACKENDS, read_only=True) as reader,
    ):
        put(one, ("a",), b"one")
        put(other, ("b",), b"other")
        for database in (one, other, reader):
            assert [name for name, _ in database.at().entries(())] == ["a", "b"]


def test_a_torn_end_in_memory_is_recovered(url):
    with Database(url, backends=MEMORY_BACKENDS) as database:
        put(database, ("a",), b"one")
    storage = MEMORY_BACKENDS["mem"].open(url, read_only=False, create=False)
    storage.acquire_append_lock()
    storage.write(storage.size(), [b"torn"], 4)
    storage.release_append_lock()
    storage.close()
    with Database(url, backends=MEMORY_BACKENDS) as database:
        assert database.recovered_bytes == 4
        assert content(database.at(), "a") == b"one"


def test_an_unknown_scheme_is_told_with_those_that_there_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UsageError, match=r"s3://bucket/x.* no storage backend for s3://.*: file://, mem://\."
    ):
        Database("s3://bucket/x", backends=MEMORY_BACKENDS)
    with pytest.raises(UsageError, match=r"schemes: file://\."):
        Log.open("s3://key:secret@bucket/x")
    assert list(tmp_path.iterdir()) == []
    assert shown_location("s3://key:secret@bucket/x@y") == "s3://bucket/x@y"


def test_a_file_may_be_named_by_a_url(tmp_path):
    path = tmp_path / "with space.svcdb"
    with Database(f"file://{tmp_path}/with%20space.svcdb") as database:
        put(database, ("a",), b"one")
        assert database.path == path
    with Database(path, create=False) as database:
        assert content(database.at(), "a") == b"one"
    with pytest.raises(UsageError, match="absolute"):
        Database("file://x.svcdb")


def test_where_things_lie_is_told_without_opening(tmp_path, url):
    place = locate(tmp_path / "x.svcdb")
    assert place.state_directory == (tmp_path / "x.svcdb.d").resolve()
    assert place.lock_file == tmp_path / "x.svcdb"
    assert list(tmp_path.iterdir()) == []
    with Database(url, backends=MEMORY_BACKENDS) as database:
        assert database.place == locate(url, MEMORY_BACKENDS)
        with pytest.raises(InvalidInput, match=f"{url} is none"):
            _ = database.path


class Failing:
    scheme = "failing"
    is_shared = True

    def __init__(self, error):
        self.error = error

    def open(self, url, *, read_only, create):
        raise self.error

    def locate(self, url):
        raise self.error


def test_what_a_backend_raises_is_told_in_words():
    def opening(error):
        return Database("failing://user:pass@place", backends={"failing": Failing(error)})

    with pytest.raises(Forbidden, match="The bucket is not yours"):
        opening(Forbidden("The bucket is not yours."))
    with pytest.raises(SvcError, match=r"failing://place cannot be opened: TimeoutError: no answer\.$"):
        opening(TimeoutError("no answer"))


def test_no_backend_replaces_the_kernels_own(tmp_path):
    with Database(tmp_path / "x.svcdb", backends={"file": Failing(ValueError())}) as database:
        put(database, ("a",), b"one")
    assert LocalFileBackend().is_shared


class TestCommands:
    @pytest.fixture
    def run(self, tmp_path, monkeypatch):
        distributions = DistributionFactory(tmp_path / "installed")
        install_memory_storage(distributions)

        def run(*words, allowed="storage.memory"):
            monkeypatch.setenv("SVC_PLUGINS", allowed)
            return CliRunner().invoke(root, list(map(str, words)))

        yield run
        distributions.close()

    def test_commands_open_what_an_allowed_plugin_can_open(self, run, url):
        with Database(url, backends=MEMORY_BACKENDS) as database:
            put(database, ("a",), b"one")
        shown = run("info", "-D", url)
        assert shown.exit_code == 0, shown.output
        assert url in shown.output
        assert run("verify", "-D", url).exit_code == 0
        assert run("status", "-D", url).exit_code == 14

    def test_a_backend_of_a_plugin_that_is_not_allowed_is_not_there(self, run, url):
        refused = run("info", "-D", url, allowed="")
        assert isinstance(refused.exception, UsageError) or refused.exit_code == 2
        assert "mem://" in str(refused.exception) + refused.output

    def test_a_missing_database_in_memory_is_not_made_by_reading(self, run, url):
        missing = run("info", "-D", url)
        assert isinstance(missing.exception, DatabaseNotFound) or missing.exit_code != 0
        with pytest.raises(DatabaseNotFound):
            Database(url, backends=MEMORY_BACKENDS, create=False)
