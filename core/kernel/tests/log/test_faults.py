"""Full disks, broken media and short writes: nothing half written is ever taken for whole."""

from __future__ import annotations

import errno
import os

import pytest

from svc.errors import CorruptRecord, InsufficientStorage
from svc.hashing import ObjectKind, hash_object
from svc.log import FIRST, FileOperations, LocalFileStorage, Log, encode_record, record_size


def framed(content: bytes, kind: ObjectKind = ObjectKind.CHUNK) -> bytes:
    return encode_record(kind, hash_object(kind, content), content, time_ms=1)


class Faulty(FileOperations):
    """Writes at most ``short`` bytes a call, and fails from the n-th write on or in other calls."""

    def __init__(self):
        self.short = None
        self.failing = {}
        self.writes_left = None

    def _check(self, name):
        number = self.failing.get(name)
        if number is not None:
            raise OSError(number, os.strerror(number))

    def pwritev(self, fd, pieces, offset):
        if self.writes_left == 0:
            self._check("pwritev")
        if self.writes_left is not None:
            self.writes_left -= 1
        data = b"".join(pieces)
        return os.pwrite(fd, data[: self.short], offset)

    def fdatasync(self, fd):
        self._check("fdatasync")
        os.fdatasync(fd)

    def fsync(self, fd):
        self._check("fsync")
        os.fsync(fd)

    def ftruncate(self, fd, length):
        self._check("ftruncate")
        os.ftruncate(fd, length)


@pytest.fixture
def faults():
    return Faulty()


@pytest.fixture
def log(path, faults):
    with Log(LocalFileStorage.open(path, operations=faults)) as opened:
        opened.recover()
        opened.append([framed(b"before")])
        yield opened


@pytest.mark.parametrize("short", [1, 7, 72, 100, 4096])
def test_short_writes_are_continued(log, faults, short):
    faults.short = short
    content = os.urandom(5000) if short > 50 else os.urandom(200)
    offset = log.append([framed(b"small"), framed(content)])
    assert log.read_payload(offset + record_size(5), len(content)) == content


def test_a_write_that_makes_no_progress_is_a_full_disk(log, faults, path):
    faults.short = 0
    size = path.stat().st_size
    with pytest.raises(InsufficientStorage):
        log.append([framed(b"nothing")])
    assert path.stat().st_size == size == log.tail


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_failed_write_is_taken_back(log, faults, path, number, after):
    before = path.read_bytes()
    faults.short, faults.writes_left, faults.failing["pwritev"] = 50, after, number
    with pytest.raises(OSError if number == errno.EIO else InsufficientStorage):
        log.append([framed(b"lost" * 100)])
    assert path.read_bytes() == before
    assert log.tail == len(before)
    faults.writes_left = faults.short = None
    assert log.append([framed(b"again")]) == len(before)


def test_what_cannot_be_taken_back_is_cut_by_the_next_appender(log, faults, path):
    before = path.read_bytes()
    faults.short, faults.writes_left = 50, 3
    faults.failing.update(pwritev=errno.EIO, ftruncate=errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        log.append([framed(b"lost" * 100)])
    assert path.stat().st_size == len(before) + 150
    assert log.tail == len(before)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        log.append([framed(b"still broken")])
    faults.failing.clear()
    faults.writes_left = faults.short = None
    with Log.open(path) as other:
        assert other.append([framed(b"again")]) == len(before)
    assert sum(1 for _ in log.scan(verify=True)) == 2


def test_a_failed_sync_reaches_the_caller(log, faults):
    faults.failing["fdatasync"] = errno.EIO
    for call in (log.sync, log.recover):
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            call()
    # Neither lock stays behind.
    faults.failing.clear()
    with log.commit_lock():
        log.append([framed(b"after")])


def test_without_space_to_save_nothing_is_cut(log, faults, path, forget):
    torn = framed(b"acknowledged?", ObjectKind.COMMIT)[:-8]
    with open(path, "ab") as file:
        file.write(torn)
    before = path.read_bytes()
    faults.failing["fsync"] = errno.ENOSPC
    with pytest.raises(InsufficientStorage):
        log.recover()
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.cut-*"))
    faults.failing.clear()
    recovery = log.recover()
    assert recovery.cut_bytes == len(torn)
    assert recovery.saved_to is not None


def test_without_space_what_nobody_was_told_of_is_cut_all_the_same(log, path, monkeypatch, caplog):
    def refuse(*_, **__):
        raise InsufficientStorage("There is no space left.")

    monkeypatch.setattr(LocalFileStorage, "save", refuse)
    tail = log.tail
    with open(path, "ab") as file:
        file.write(framed(b"never finished")[:-8])
    log.append([framed(b"next")])
    assert log.read_payload(tail, 4) == b"next"
    assert "They are not saved" in caplog.text
    assert not list(path.parent.glob("*.cut-*"))


def test_a_limit_on_the_size_of_files_is_a_full_disk(path):
    """The real thing: the kernel refuses to let the file grow, in the middle of a write."""
    child = os.fork()
    if child == 0:
        import resource

        status = 1
        try:
            log = Log.open(path)
            log.recover()
            log.append([framed(b"before")])
            tail = log.tail
            resource.setrlimit(resource.RLIMIT_FSIZE, (tail + 1000, tail + 1000))
            try:
                log.append([framed(bytes(5000))])
            except InsufficientStorage:
                status = 0 if path.stat().st_size == tail else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with Log.open(path) as log:
        assert log.recover().records == 1


def test_a_medium_that_cannot_be_read_is_not_called_corrupt(log, faults):
    def broken(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    faults.pread = broken
    with pytest.raises(OSError, match=os.strerror(errno.EIO)) as caught:
        log.read_payload(FIRST, 6)
    assert not isinstance(caught.value, CorruptRecord)
