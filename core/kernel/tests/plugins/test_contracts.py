"""The contract classes, run against what the kernel itself has, and against plugins that break them."""

from __future__ import annotations

import pytest
from blake3 import blake3

from svc.database import Database, View, ViewBatch
from svc.errors import AuthRequired, VersionCollected
from svc.log import LocalFileBackend
from svc.plugins import ROOT_IDENTITY, AuthMode, Credentials, Identity
from svc_testing import (
    AuthModeContract,
    Fault,
    MemoryBackend,
    StorageBackendContract,
    ViewContract,
    forget_memory,
    inject,
)


class PathView(View):
    """The paths of all files, as a view: small, and right."""

    name = "test.paths"
    format = 1

    def apply(self, commit, before, after, storage, start=0):
        for transaction in commit.transactions:
            for change in transaction.changes:
                if change.kind == "ref" and change.path == ("HEAD",):
                    for stored, _ in list(storage.scan()):
                        storage.delete(stored)
                    for path, found in after.walk(files_only=True):
                        storage.put("/".join(path).encode(), found.hash)
                key = "/".join(change.path).encode()
                for stored, _ in list(storage.scan(key)):
                    if stored == key or stored.startswith(key + b"/"):
                        storage.delete(stored)
                entry = after.get(change.path)
                if entry is not None and entry.totals is None:
                    storage.put(key, entry.hash)
                elif entry is not None:
                    for path, found in after.walk(change.path, files_only=True):
                        storage.put("/".join(path).encode(), found.hash)
                if change.source is not None and after.get(change.source) is None:
                    source = "/".join(change.source).encode()
                    for stored, _ in list(storage.scan(source)):
                        if stored == source or stored.startswith(source + b"/"):
                            storage.delete(stored)


class CountingView(View):
    """A view that breaks the contract: it counts deliveries, and so a second one changes it."""

    name = "test.counting"
    format = 1

    def apply(self, commit, before, after, storage, start=0):
        storage.put(b"count", str(int(storage.get(b"count") or b"0") + 1).encode())


class TestPathView(ViewContract):
    @pytest.fixture
    def view(self):
        return PathView()


class OperationsView(View):
    """What commits say of paths, and the hashes as long as the trees are there; each row names its commit."""

    name = "test.operations"
    format = 1
    takes_collected = True

    def apply(self, commit, before, after, storage, start=0):
        for number, path in enumerate(paths_of(commit)):
            if number >= start:
                entry = None if after.is_collected else after.get(path)
                storage.put(self.key(commit, path), b"" if entry is None else entry.hash)
                yield

    def collect(self, step, storage, start=0):
        for number, path in enumerate(paths_of(step.commit)):
            if number >= start:
                storage.put(self.key(step.commit, path), b"")
                yield

    @staticmethod
    def key(commit, path):
        return commit.sequence.to_bytes(4, "big") + "/".join(path).encode()


def paths_of(commit):
    return [change.path for transaction in commit.transactions for change in transaction.changes]


class TestOperationsView(ViewContract):
    @pytest.fixture
    def view(self):
        return OperationsView()


@pytest.mark.parametrize(
    "test",
    [
        ViewContract().test_commits_that_lose_their_trees_leave_what_records_give,
        ViewContract().test_a_collection_while_the_view_is_at_work_leaves_what_rebuilding_gives,
    ],
)
def test_the_view_contract_catches_a_view_that_keeps_what_only_trees_told(tmp_path, test):
    class Keeping(OperationsView):
        def collect(self, step, storage, start=0):
            return None

    with pytest.raises(AssertionError):
        test(Keeping(), tmp_path)


def test_the_view_contract_catches_a_view_that_reads_what_was_collected(tmp_path):
    class Reading(OperationsView):
        def apply(self, commit, before, after, storage, start=0):
            for path in paths_of(commit):
                entry = after.get(path)
                storage.put(self.key(commit, path), b"" if entry is None else entry.hash)

    with pytest.raises(VersionCollected):
        ViewContract().test_a_collection_while_the_view_is_at_work_leaves_what_rebuilding_gives(
            Reading(), tmp_path
        )


class FileView(View):
    """The names of files that were put, each as a file of its own; several commits at once."""

    name = "test.files"
    format = 1
    keeps_files = True

    def begin(self, storage):
        return FileBatch(storage)


class FileBatch(ViewBatch):
    def __init__(self, storage):
        self.storage = storage
        self.waiting = []

    def apply(self, commits, start):
        changes = [
            (step, change)
            for step in commits
            for transaction in step.commit.transactions
            for change in transaction.changes
        ]
        for step, change in changes[start:]:
            name = blake3("/".join(change.path).encode()).hexdigest()
            self.waiting.append((name, str(step.commit.sequence)))
            self.storage.put(b"last", name.encode())
            yield

    def end(self):
        for name, text in self.waiting:
            (self.storage.directory / name).write_text(text)
        self.waiting = []

    def close(self):
        self.storage = None


class TestFileView(ViewContract):
    @pytest.fixture
    def view(self):
        return FileView()

    def contents(self, storage):
        files = {path.name: path.read_text() for path in storage.directory.iterdir()}
        return dict(storage.scan()), files


class LateBatch(FileBatch):
    """Writes its files behind the last step only."""

    def apply(self, commits, start):
        yield from super().apply(commits, start)
        super().end()

    def end(self):
        pass


def test_the_view_contract_catches_a_batch_whose_end_does_not_write(tmp_path, monkeypatch):
    contract = TestFileView()
    monkeypatch.setattr(FileView, "begin", lambda self, storage: LateBatch(storage))
    with pytest.raises(AssertionError):
        contract.test_a_restart_at_any_step_changes_nothing(FileView(), tmp_path)


def test_the_view_contract_catches_a_view_that_counts_deliveries(tmp_path):
    with pytest.raises(AssertionError):
        ViewContract().test_a_commit_that_comes_twice_changes_nothing_the_second_time(
            CountingView(), tmp_path
        )


class WorkingView(View):
    """The sizes of all files: commits note which paths they touch, and work looks there.

    It keeps in itself which files of the path in hand it has seen, as long as the storage is the same.
    """

    name = "test.working"
    format = 1
    starts_at_head = True

    def __init__(self):
        self.storage, self.seen = None, set()

    def apply(self, commit, before, after, storage, start=0):
        for transaction in commit.transactions:
            for change in transaction.changes:
                for path in filter(None, (change.path, change.source)):
                    storage.put(b"look at/" + "/".join(path).encode(), commit.sequence.to_bytes(8, "big"))

    def start(self, storage, commit):
        storage.put(b"look at/", b"")

    def work(self, storage, at, should_stop):
        if not self.goes_on_with(storage):
            self.storage, self.seen = storage, set()
        for key, _ in list(storage.scan(b"look at/")):
            place = key.removeprefix(b"look at/")
            held = b"size/" + place
            for stored, _ in list(storage.scan(held)):
                known = tuple(stored.removeprefix(b"size/").decode().split("/"))
                if (stored == held or not place or stored.startswith(held + b"/")) and at.get(known) is None:
                    storage.delete(stored)
            for path, entry in self.files_at(at, place.decode()):
                if (key, path) not in self.seen:
                    self.seen.add((key, path))
                    storage.put(b"size/" + "/".join(path).encode(), b"%d" % entry.size)
                    if should_stop():
                        return True
            storage.delete(key)
            self.seen.clear()
            if should_stop():
                return True
        return False

    def goes_on_with(self, storage):
        return storage is self.storage

    @staticmethod
    def files_at(at, place):
        path = tuple(place.split("/")) if place else ()
        entry = at.get(path) if path else None
        if entry is not None and entry.totals is None:
            return [(path, entry)]
        return [] if path and entry is None else list(at.walk(path, files_only=True))


class ForgetfulView(WorkingView):
    """A view that breaks the contract: it goes on with what it has in itself, whatever is stored."""

    def goes_on_with(self, storage):
        self.storage = storage
        return True


class TestWorkingView(ViewContract):
    @pytest.fixture
    def view(self):
        return WorkingView()


def test_the_view_contract_catches_work_that_trusts_what_it_has_in_itself(tmp_path):
    with pytest.raises(AssertionError):
        ViewContract().test_work_that_is_cut_off_changes_nothing(ForgetfulView(), tmp_path)


def test_the_view_contract_catches_a_start_that_is_not_what_following_gives(tmp_path):
    class Lazy(WorkingView):
        def start(self, storage, commit):
            pass

    with pytest.raises(AssertionError):
        ViewContract().test_beginning_at_any_commit_gives_the_same(Lazy(), tmp_path)


class PasswordMode(AuthMode):
    """A mode with one password."""

    name = "password"

    def authenticate(self, credentials: Credentials) -> Identity | None:
        if credentials.value is None:
            return None
        if credentials.value != "open sesame":
            raise AuthRequired("The password is wrong.")
        return Identity(ROOT_IDENTITY.user_id, "root", is_root=True, auth_mode="password")


class TestPasswordMode(AuthModeContract):
    @pytest.fixture
    def mode(self):
        return PasswordMode()

    @pytest.fixture
    def accepted(self):
        return [Credentials(scheme="bearer", value="open sesame")]

    @pytest.fixture
    def refused(self):
        return [Credentials(scheme="bearer", value="open barley")]


def test_the_auth_contract_catches_a_mode_that_is_silent_about_wrong_credentials():
    class Silent(PasswordMode):
        def authenticate(self, credentials):
            try:
                return super().authenticate(credentials)
            except AuthRequired:
                return None

    with pytest.raises(pytest.fail.Exception):
        AuthModeContract().test_refused_credentials_raise(Silent(), [Credentials(value="open barley")])


def test_faults_fail_the_call_that_they_name(tmp_path):
    import os

    with Database(tmp_path / "faults.svcdb") as database:
        assert database.head().sequence == 0
    original = os.getpid
    with inject(Fault.parse("os.getpid:2:EIO")):
        assert os.getpid() == original()
        with pytest.raises(OSError, match="Input/output"):
            os.getpid()
        assert os.getpid() == original()
    assert os.getpid is original
    for text in ("os.getpid:0:EIO", "os.getpid:1:NOTHING"):
        with pytest.raises(ValueError):
            Fault.parse(text)


class TestLocalFileBackend(StorageBackendContract):
    @pytest.fixture
    def backend(self):
        return LocalFileBackend()

    @pytest.fixture
    def url(self, tmp_path):
        return str(tmp_path / "local.svcdb")


class TestMemoryBackend(StorageBackendContract):
    @pytest.fixture
    def backend(self):
        return MemoryBackend()

    @pytest.fixture
    def url(self, tmp_path):
        yield f"mem://{tmp_path.name}"
        forget_memory(tmp_path.name)
