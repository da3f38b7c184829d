"""The log needs of its medium what the protocol says, and no more: here it lies in plain memory."""

from __future__ import annotations

import threading

import pytest

from svc.errors import CorruptRecord
from svc.hashing import ObjectKind, hash_object
from svc.log import FIRST, LocalFileStorage, Log, LogStorage, Writability, encode_record
from svc.log.framing import FileHeader, encode_file_header


class MemoryStorage:
    """The protocol and nothing else."""

    def __init__(self, directory, content=b""):
        self.header = encode_file_header(FileHeader(bytes(range(16)), 5))
        self.name = "memory"
        self.read_only = False
        self.alone = True
        self.state_directory = directory
        self.content = bytearray(self.header + content)
        self.known = None
        self.lock_file = directory / "lock"
        self.copies = []
        self.locks = {"append": threading.Lock(), "commit": threading.Lock()}

    def size(self):
        return len(self.content)

    def tail(self):
        return self.known

    def owns_state(self):
        return self.known is not None

    def is_displaced(self):
        return False

    def publish_tail(self, tail):
        assert self.locks["append"].locked()
        self.known = tail

    def read(self, offset, length):
        return bytes(self.content[offset : offset + length])

    def write(self, offset, pieces, total):
        assert self.locks["append"].locked()
        assert offset == len(self.content)
        self.content += b"".join(pieces)
        assert len(self.content) == offset + total

    def sync(self):
        pass

    def begin_sync(self, offset, length):
        assert offset + length <= len(self.content)

    def save(self, offset, *, unfinished=False):
        self.copies.append(bytes(self.content[offset:]))
        return "unfinished" if unfinished else "saved"

    def saved(self):
        return ["saved"] if self.copies else []

    def read_saved(self, name, offset, length):
        return self.copies[0][offset : offset + length]

    def cut(self, offset):
        assert self.locks["append"].locked()
        del self.content[offset:]

    def acquire_append_lock(self):
        self.locks["append"].acquire()

    def release_append_lock(self):
        self.locks["append"].release()

    def acquire_commit_lock(self):
        self.locks["commit"].acquire()

    def try_acquire_commit_lock(self):
        return self.locks["commit"].acquire(blocking=False)

    def release_commit_lock(self):
        self.locks["commit"].release()

    def admit_others(self):
        self.alone = False

    def exclude_others(self):
        return True

    def others_present(self):
        return False

    def writability(self):
        return Writability.WRITABLE

    def disk_space(self):
        return 1, 2

    def close(self):
        self.known = None


def framed(content: bytes, kind: ObjectKind = ObjectKind.CHUNK) -> bytes:
    return encode_record(kind, hash_object(kind, content), content, time_ms=1)


@pytest.fixture
def storage(tmp_path):
    rubbish = b"of unknown origin" * 8
    return MemoryStorage(tmp_path, framed(b"one") + framed(b"c1", ObjectKind.COMMIT) + rubbish)


def test_both_media_follow_the_protocol(storage, path):
    assert isinstance(storage, LogStorage)
    opened = LocalFileStorage.open(path)
    assert isinstance(opened, LogStorage)
    opened.close()


def test_a_log_recovers_appends_and_reads_on_any_medium(storage):
    with Log(storage) as log:
        assert log.alone
        assert (log.database_id, log.created_ms) == (bytes(range(16)), 5)
        recovery = log.recover(FIRST)
        assert (recovery.records, recovery.saved_to) == (2, "saved")
        assert storage.copies == [b"of unknown origin" * 8]
        assert not storage.alone
        with log.commit_lock():
            offset = log.append([framed(b"two"), framed(b"c2", ObjectKind.COMMIT)])
            assert not log.try_acquire_commit_lock()
        assert log.read_payload(offset, 3) == b"two"
        assert [item.payload for item in log.scan(payloads=True, verify=True)] == [
            b"one",
            b"c1",
            b"two",
            b"c2",
        ]
        assert log.disk_space() == (1, 2)


def test_an_append_before_any_recovery_cuts_only_what_was_never_finished(storage):
    log = Log(storage)
    assert log.needs_recovery
    content = bytes(storage.content)
    with pytest.raises(CorruptRecord, match="nobody has recovered it"):
        log.append([framed(b"two")])
    assert storage.content == content
    end = log.tail
    storage.content[end:] = framed(b"torn")[:-8]
    assert log.append([framed(b"two")]) == end
    assert storage.copies == [framed(b"torn")[:-8]]
    assert sum(1 for _ in log.scan(verify=True)) == 3
