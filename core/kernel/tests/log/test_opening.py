"""Opening: what is made, what is refused and why, and who waits for whom."""

from __future__ import annotations

import errno
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from svc.errors import (
    CorruptRecord,
    DatabaseBusy,
    DatabaseNotFound,
    Forbidden,
    ForeignFile,
    InsufficientStorage,
    InvalidInput,
    ReadOnly,
    SvcError,
    TruncatedFile,
    UnsupportedFormat,
)
from svc.hashing import ObjectKind, hash_object
from svc.log import (
    FIRST,
    FileOperations,
    LocalFileStorage,
    Log,
    LogStorage,
    byte_locks,
    encode_record,
    local_file,
)


def chunk(content: bytes) -> bytes:
    return encode_record(ObjectKind.CHUNK, hash_object(ObjectKind.CHUNK, content), content, time_ms=1)


def failing(name: str, number: int) -> FileOperations:
    """System calls of which one always fails."""

    def fail(*_):
        raise OSError(number, os.strerror(number))

    operations = FileOperations()
    setattr(operations, name, fail)
    return operations


def test_a_missing_file_is_made_for_its_owner_alone_with_nothing_left_over(path):
    with Log.open(path) as log:
        assert log.alone and log.tail == FIRST == path.stat().st_size
        assert log.storage.path == path and log.state_directory == path.with_name("x.svcdb.d")
        assert len(log.database_id) == 16 and log.created_ms > 0
        assert isinstance(log.storage, LogStorage)
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(log.state_directory.stat().st_mode) & 0o077 == 0
    assert sorted(item.name for item in path.parent.iterdir()) == ["x.svcdb", "x.svcdb.d"]


def test_opening_again_finds_the_same_database(path):
    with Log.open(path) as log:
        log.recover()
        offset = log.append([chunk(b"kept")])
        identity = log.database_id
    with Log.open(path, create=False) as log:
        assert (log.database_id, log.read_payload(offset, 4)) == (identity, b"kept")


def test_many_who_make_the_same_file_at_once_get_one_database(path):
    barrier = threading.Barrier(8)

    def open_one(_):
        barrier.wait()
        with Log.open(path) as log:
            if log.alone:
                log.recover()
            return log.database_id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(open_one, range(8)))) == 1
    assert sorted(item.name for item in path.parent.iterdir()) == ["x.svcdb", "x.svcdb.d"]


def test_a_filesystem_without_hard_links_gets_its_file_by_renaming(path, monkeypatch):
    def no_links(*_, **__):
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", no_links)
    with Log.open(path) as log:
        identity = log.database_id
    with Log.open(path) as log:
        assert log.database_id == identity


def test_nothing_is_made_where_nothing_is_wanted(path):
    for arguments in ({"create": False}, {"read_only": True}):
        with pytest.raises(DatabaseNotFound, match="no database at"):
            Log.open(path, **arguments)
    with pytest.raises(DatabaseNotFound, match=r"directory .* does not exist"):
        Log.open(path.parent / "missing" / "x.svcdb")
    assert list(path.parent.iterdir()) == []


def test_what_is_not_a_file_is_foreign(path):
    path.mkdir()
    with pytest.raises(ForeignFile, match="is a directory"):
        Log.open(path)
    pipe = path.with_name("pipe")
    os.mkfifo(pipe)
    with pytest.raises(ForeignFile, match="not a regular file"):
        Log.open(pipe, read_only=True)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", ForeignFile),
        (b"PK\x03\x04 a picture, an archive, a letter", ForeignFile),
        (b"\x89SVC\r\n\x1a\n", TruncatedFile),
        (b"\x89SVC\r\n\x1a\n" + b"\x02\x00" + bytes(118), UnsupportedFormat),
        (b"\x89SVC\r\n\x1a\n" + b"\x00\x01\x00\x00\x01\x02\x03\x04" + bytes(112), ForeignFile),
        (b"\x89SVC\r\n\x1a\n" + b"\x01\x00\x00\x00\x04\x03\x02\x01" + bytes(112), CorruptRecord),
    ],
)
def test_a_file_that_is_no_log_is_refused_and_untouched(path, content, error, read_only):
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        Log.open(path, read_only=read_only)
    assert type(caught.value) is error and "x.svcdb" in caught.value.message
    assert path.read_bytes() == content and not path.with_name("x.svcdb.d").exists()


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_an_impossible_name_is_refused(path, name):
    with pytest.raises(InvalidInput):
        Log.open(path.parent / name)


def test_a_file_in_the_place_of_the_state_directory_is_named(path):
    path.with_name("x.svcdb.d").write_text("in the way")
    with pytest.raises(ForeignFile, match=r"x\.svcdb\.d is in the way"):
        Log.open(path)


@pytest.mark.parametrize(
    ("number", "error"),
    [(errno.EROFS, ReadOnly), (errno.EACCES, ReadOnly), (errno.EPERM, ReadOnly), (errno.EIO, SvcError)],
)
def test_a_file_that_can_only_be_read_says_so(path, monkeypatch, number, error):
    Log.open(path).close()
    real = os.open

    def refusing(name, flags, *rest):
        if os.fspath(name) == os.fspath(path) and flags & os.O_RDWR:
            raise OSError(number, os.strerror(number))
        return real(name, flags, *rest)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(error):
        Log.open(path)
    with Log.open(path, read_only=True) as log:
        assert log.tail == FIRST


def test_a_file_that_may_not_be_read_is_forbidden(path, monkeypatch):
    Log.open(path).close()
    monkeypatch.setattr(os, "access", lambda *_: False)

    def refuse(*_):
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Forbidden, match="no permission"):
        Log.open(path)


@pytest.mark.parametrize("call", ["pwritev", "fsync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_file_that_cannot_be_made_leaves_nothing_behind(path, call, number):
    expected = {errno.EROFS: ReadOnly, errno.EIO: SvcError}.get(number, InsufficientStorage)
    with pytest.raises(expected):
        LocalFileStorage.open(path, operations=failing(call, number))
    left = [item.name for item in path.parent.iterdir()]
    # Only the sync of the directory can fail when the whole file stands there already.
    assert left == [] or (left == ["x.svcdb"] and path.stat().st_size == FIRST)


def test_a_log_that_was_cut_short_is_not_taken_for_whole(path, forget):
    with Log.open(path) as log:
        log.recover()
        log.append([chunk(b"one")])
        tail = log.append([chunk(b"two")])
    os.truncate(path, tail)
    with Log.open(path) as log:
        for write in (log.recover, log.refuse_cut_short, lambda: log.append([chunk(b"more")])):
            with pytest.raises(TruncatedFile, match=rf"has {tail} bytes.*move x\.svcdb\.d away"):
                write()
    assert path.stat().st_size == tail
    with Log.open(path, read_only=True) as reader:
        assert reader.is_cut_short and reader.needs_recovery
        assert (reader.recover().tail, reader.tail) == (tail, tail)
        assert [record.stored_length for record in reader.scan()] == [3]
    forget()
    with Log.open(path) as log:
        assert log.recover().records == 1


def test_a_copy_under_the_same_name_is_not_measured_by_the_old_files_tail(path):
    with Log.open(path) as log:
        log.recover()
        middle = log.append([chunk(b"one")]) + len(chunk(b"one"))
        log.append([chunk(b"two")])
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes()[:middle])
    copy.replace(path)
    with Log.open(path) as log:
        assert log.needs_recovery and log.tail == middle
        assert log.recover().tail == middle and not log.needs_recovery


def test_the_state_is_beside_the_file_itself_not_beside_a_link_to_it(path):
    link = path.with_name("link.svcdb")
    link.symlink_to(path.parent / "x.svcdb")
    with Log.open(link) as first:
        first.recover()
        with Log.open(path) as second:
            assert first.state_directory == second.state_directory == path.with_name("x.svcdb.d")
            offset = first.append([chunk(b"seen")])
            assert second.tail == offset + len(chunk(b"seen"))


class TestPresence:
    def test_others_wait_until_the_one_who_is_alone_has_recovered(self, path):
        first = Log.open(path)
        with pytest.raises(DatabaseBusy, match="being recovered"):
            Log(LocalFileStorage.open(path, timeout=0.05))
        with pytest.raises(DatabaseBusy):
            Log(LocalFileStorage.open(path, read_only=True, timeout=0))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(Log.open, path)
            first.recover()
            second = waiting.result(timeout=30)
        assert first.alone and not second.alone
        first.close()
        second.close()

    def test_who_waited_opens_the_file_that_took_the_place_meanwhile(self, path, monkeypatch):
        first = Log.open(path)
        other = path.with_name("other.svcdb")
        Log.open(other).close()
        real = local_file.lock_shared

        def replace_and_wait(*arguments):
            if other.exists():
                other.replace(path)
                first.close()
            return real(*arguments)

        monkeypatch.setattr(local_file, "lock_shared", replace_and_wait)
        with Log.open(path) as second:
            assert second.database_id != first.database_id
            second.recover()
            assert second.append([chunk(b"new")]) == FIRST
        assert path.stat().st_size > FIRST

    def test_closing_without_recovering_admits_others_too(self, path):
        first = Log.open(path)
        first.close()
        with Log(LocalFileStorage.open(path, timeout=0)) as second:
            assert second.alone

    def test_an_opening_that_was_dropped_holds_nobody_up(self, path):
        first = Log.open(path)
        del first
        with Log(LocalFileStorage.open(path, timeout=0)) as second:
            assert second.alone

    def test_a_reader_keeps_a_writer_from_being_alone(self, path):
        Log.open(path).close()
        with Log.open(path, read_only=True) as reader, Log.open(path) as writer:
            assert not reader.alone and not writer.alone

    def test_recovery_does_not_need_to_be_alone(self, path, log, forget):
        offset = log.append([chunk(b"before")])
        forget()
        with Log.open(path) as late:
            assert not late.alone and late.needs_recovery
            assert late.recover().records == 1
            assert late.append([chunk(b"after")]) == offset + len(chunk(b"before"))


class TestReadOnly:
    def test_reading_needs_no_state_and_makes_none(self, path, forget):
        with Log.open(path) as log:
            log.recover()
            offset = log.append([chunk(b"text")])
        log.state_directory.joinpath("tail").unlink()
        log.state_directory.rmdir()
        with open(path, "ab") as file:
            file.write(chunk(b"torn")[:-9])
        before = path.read_bytes()
        with Log.open(path, read_only=True) as reader:
            assert reader.tail == offset + len(chunk(b"text"))
            recovery = reader.recover()
            assert (recovery.tail, recovery.cut_bytes) == (reader.tail, len(chunk(b"torn")) - 9)
            assert reader.read_payload(offset, 4) == b"text"
            assert [record.offset for record in reader.scan()] == [offset]
        assert path.read_bytes() == before
        assert [item.name for item in path.parent.iterdir()] == ["x.svcdb"]

    def test_a_reader_follows_a_writer(self, path, log):
        with Log.open(path, read_only=True) as reader:
            before = reader.tail
            log.append([chunk(b"new")])
            assert reader.tail == before + len(chunk(b"new")) == reader.recover().tail

    def test_a_reader_that_came_first_sees_the_writers_tail_once_there_is_one(self, path):
        Log.open(path).close()
        with Log.open(path, read_only=True) as reader:
            assert reader.needs_recovery and reader.tail == FIRST
            with Log.open(path) as writer:
                writer.recover()
                writer.append([chunk(b"new")])
                assert reader.tail == writer.tail

    def test_nothing_can_be_written(self, path):
        Log.open(path).close()
        with Log.open(path, read_only=True) as reader:
            for write in (lambda: reader.append([chunk(b"x")]), reader.acquire_commit_lock):
                with pytest.raises(ReadOnly):
                    write()

    def test_a_filesystem_without_locks_can_be_read_and_not_written(self, path, monkeypatch):
        Log.open(path).close()

        def no_locks(*_):
            raise OSError(errno.ENOLCK, "no locks")

        monkeypatch.setattr(byte_locks.fcntl, "fcntl", no_locks)
        with pytest.raises(ReadOnly, match="no byte-range locks"):
            Log.open(path)
        with Log.open(path, read_only=True) as reader:
            assert reader.tail == FIRST
