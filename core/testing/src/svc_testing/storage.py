"""The contract of storage backends: what the log relies on, on any medium."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from svc.errors import DatabaseClosed, DatabaseNotFound
from svc.log import Writability

if TYPE_CHECKING:
    from svc.log import LogStorage, StorageBackend

__all__ = ["StorageBackendContract"]

HEADER_SIZE = 128
LOCK_SECONDS = 30.0


class StorageBackendContract:
    """Tests of a storage backend. A subclass gives the fixtures ``backend`` and ``url``."""

    @pytest.fixture
    def backend(self) -> StorageBackend:
        """The backend under test."""
        pytest.fail(f"{type(self).__name__} must give the fixture 'backend'.")

    @pytest.fixture
    def url(self) -> str:
        """Where a new log may be made; nothing is there yet."""
        pytest.fail(f"{type(self).__name__} must give the fixture 'url'.")

    @pytest.fixture
    def storage(self, backend: StorageBackend, url: str) -> Iterator[LogStorage]:
        """A new, open log that admits others."""
        opened = _open(backend, url)
        yield opened
        opened.close()

    def test_a_missing_log_is_not_made_unless_asked(self, backend: StorageBackend, url: str) -> None:
        """Opening with ``create=False`` says that there is nothing, and leaves nothing behind."""
        for _ in range(2):
            with pytest.raises(DatabaseNotFound):
                backend.open(url, read_only=False, create=False)
        with pytest.raises(DatabaseNotFound):
            backend.open(url, read_only=True, create=False)

    def test_the_header_stays_the_same(self, backend: StorageBackend, url: str) -> None:
        """A log has one header of 128 bytes for ever."""
        first = _open(backend, url)
        header = first.header
        first.close()
        assert len(header) == HEADER_SIZE
        second = _open(backend, url)
        assert second.header == header
        second.close()

    def test_the_first_opening_is_alone_and_the_second_is_not(
        self, backend: StorageBackend, storage: LogStorage, url: str
    ) -> None:
        """Whoever opens a log that someone has open knows it, and so leaves recovery alone."""
        assert storage.alone
        second = backend.open(url, read_only=False, create=False)
        assert not second.alone
        second.close()

    def test_what_is_written_can_be_read(self, storage: LogStorage) -> None:
        """Pieces are written as one run at the end; a read at the end gives what there is."""
        start = storage.size()
        _append(storage, b"first ", b"second", b"")
        assert storage.size() == start + 12
        assert storage.read(start, 12) == b"first second"
        assert storage.read(start + 6, 100) == b"second"
        assert storage.read(start + 12, 10) == b""

    def test_another_opening_sees_bytes_and_tail(
        self, backend: StorageBackend, storage: LogStorage, url: str
    ) -> None:
        """What one has published all see, and a reader need not be able to write."""
        start = storage.size()
        _append(storage, b"x" * 1000)
        storage.publish_tail(start + 1000)
        storage.sync()
        for read_only in (False, True):
            other = backend.open(url, read_only=read_only, create=False)
            assert other.read_only == read_only
            assert other.tail() == start + 1000
            assert other.read(start, 1000) == b"x" * 1000
            other.close()

    def test_bytes_survive_closing(self, backend: StorageBackend, url: str) -> None:
        """What was synced is there when the log is opened again."""
        first = _open(backend, url)
        start = first.size()
        _append(first, b"durable")
        first.sync()
        first.close()
        second = _open(backend, url)
        assert second.read(start, 7) == b"durable"
        second.close()

    def test_a_cut_removes_the_end_for_good(self, backend: StorageBackend, url: str) -> None:
        """Nothing behind a cut comes back, and the next write stands at the cut."""
        first = _open(backend, url)
        start = first.size()
        _append(first, b"kept", b"torn")
        assert first.save(start + 4)
        first.acquire_append_lock()
        first.cut(start + 4)
        first.release_append_lock()
        assert first.size() == start + 4
        _append(first, b"new")
        first.close()
        second = _open(backend, url)
        assert second.read(start, 100) == b"keptnew"
        second.close()

    @pytest.mark.parametrize("name", ["append", "commit"])
    def test_a_lock_excludes_other_openings(
        self, backend: StorageBackend, storage: LogStorage, url: str, name: str
    ) -> None:
        """Two openings never hold the same lock, and a waiting one gets it when it is free."""
        other = backend.open(url, read_only=False, create=False)
        order: list[str] = []
        acquired = threading.Event()

        def wait_for_it() -> None:
            _method(other, "acquire", name)()
            order.append("other")
            acquired.set()
            _method(other, "release", name)()

        _method(storage, "acquire", name)()
        waiting = threading.Thread(target=wait_for_it, daemon=True)
        waiting.start()
        assert not acquired.wait(0.2)
        order.append("released")
        _method(storage, "release", name)()
        assert acquired.wait(LOCK_SECONDS)
        waiting.join(LOCK_SECONDS)
        assert order == ["released", "other"]
        other.close()

    def test_it_is_told_whether_others_have_it_open(
        self, backend: StorageBackend, storage: LogStorage, url: str
    ) -> None:
        """Readers count as well, and who has closed it does not."""
        assert not storage.others_present()
        for read_only in (False, True):
            other = backend.open(url, read_only=read_only, create=False)
            assert storage.others_present()
            assert other.others_present()
            other.close()
            assert not storage.others_present()

    def test_the_state_directory_is_told_to_be_of_this_database(
        self, backend: StorageBackend, storage: LogStorage, url: str
    ) -> None:
        """From the first tail that is published on, for every later opening."""
        storage.acquire_append_lock()
        storage.publish_tail(storage.size())
        storage.release_append_lock()
        assert storage.owns_state()
        other = backend.open(url, read_only=True, create=False)
        assert other.owns_state()
        other.close()

    def test_what_is_saved_as_unfinished_is_told_from_the_rest_by_its_name(self, storage: LogStorage) -> None:
        """Whoever finds the copies knows which may be missed."""
        start = storage.size()
        _append(storage, b"x" * 8)
        assert storage.save(start) != storage.save(start, unfinished=True)

    def test_space_is_told(self, storage: LogStorage) -> None:
        """Free space is at most all space."""
        free, total = storage.disk_space()
        assert 0 <= free <= total

    def test_copies_are_listed_and_read_as_long_as_they_are_there(
        self, backend: StorageBackend, storage: LogStorage, url: str
    ) -> None:
        """By every opening, and without what is known to be unfinished."""
        start = storage.size()
        _append(storage, b"torn off")
        assert list(storage.saved()) == []
        name, _ = storage.save(start), storage.save(start, unfinished=True)
        other = backend.open(url, read_only=True, create=False)
        assert list(other.saved()) == [name]
        assert other.read_saved(name, 0, 4) + other.read_saved(name, 4, 100) == b"torn off"
        assert other.read_saved(name, 8, 1) == b""
        other.close()

    def test_a_backend_says_beforehand_where_things_lie(self, backend: StorageBackend, url: str) -> None:
        """The state directory and the lock file are the same before, while and after the log is open."""
        before = backend.locate(url)
        first = _open(backend, url)
        assert (first.state_directory, first.lock_file) == (before.state_directory, before.lock_file)
        assert first.state_directory.is_dir()
        assert first.lock_file.is_file()
        assert backend.locate(url) == before
        first.close()

    def test_a_medium_that_was_written_takes_writes(self, storage: LogStorage) -> None:
        """Status and health show what this says."""
        _append(storage, b"x")
        assert storage.writability() is Writability.WRITABLE
        free, total = storage.disk_space()
        assert 0 <= free <= total

    def test_an_opening_that_excludes_others_is_alone(
        self, backend: StorageBackend, storage: LogStorage, url: str
    ) -> None:
        """It gets the log only when nobody else has it, and who comes later waits until it is closed."""
        other = backend.open(url, read_only=True, create=False)
        assert not storage.exclude_others()
        other.close()
        assert storage.exclude_others()
        opened = threading.Event()

        def open_it() -> None:
            backend.open(url, read_only=False, create=False).close()
            opened.set()

        threading.Thread(target=open_it, daemon=True).start()
        assert not opened.wait(0.1)
        storage.close()
        assert opened.wait(LOCK_SECONDS)

    def test_a_closed_log_says_so(self, backend: StorageBackend, url: str) -> None:
        """Closing twice does no harm, and reading afterwards is a clear error."""
        opened = _open(backend, url)
        opened.close()
        opened.close()
        with pytest.raises(DatabaseClosed):
            opened.read(0, 1)


def _open(backend: StorageBackend, url: str) -> LogStorage:
    opened = backend.open(url, read_only=False, create=True)
    opened.admit_others()
    return opened


def _append(storage: LogStorage, *pieces: bytes) -> None:
    storage.acquire_append_lock()
    try:
        storage.write(storage.size(), pieces, sum(map(len, pieces)))
    finally:
        storage.release_append_lock()


def _method(storage: LogStorage, verb: str, lock: str) -> Callable[[], None]:
    method: Callable[[], None] = getattr(storage, f"{verb}_{lock}_lock")
    return method
