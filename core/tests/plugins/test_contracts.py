"""The contract classes, run against what the kernel itself has, and against plugins that break them."""

from __future__ import annotations

import pytest

from svc.database import Database
from svc.errors import AuthRequired
from svc.log import LocalFileStorage
from svc.plugins import ROOT_IDENTITY, AuthMode, Credentials, Identity
from svc.testing import AuthModeContract, Fault, StorageBackendContract, ViewContract, inject


class PathView:
    """The paths of all files, as a view: small, and right."""

    name = "test.paths"
    format = 1

    def apply(self, commit, before, after, storage):
        for transaction in commit.transactions:
            for change in transaction.changes:
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


class CountingView:
    """A view that breaks the contract: it counts deliveries, and so a second one changes it."""

    name = "test.counting"
    format = 1

    def apply(self, commit, before, after, storage):
        storage.put(b"count", str(int(storage.get(b"count") or b"0") + 1).encode())


class TestPathView(ViewContract):
    @pytest.fixture
    def view(self):
        return PathView()


def test_the_view_contract_catches_a_view_that_counts_deliveries(tmp_path):
    with pytest.raises(AssertionError):
        ViewContract().test_a_commit_that_comes_twice_changes_nothing_the_second_time(
            CountingView(), tmp_path
        )


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


class LocalFileBackend:
    """The kernel's own medium, opened by paths as a backend is by URLs."""

    scheme = "file"

    def open(self, url, *, read_only, create):
        return LocalFileStorage.open(url, read_only=read_only, create=create)


class TestLocalFileBackend(StorageBackendContract):
    @pytest.fixture
    def backend(self):
        return LocalFileBackend()

    @pytest.fixture
    def url(self, tmp_path):
        return str(tmp_path / "local.svcdb")
