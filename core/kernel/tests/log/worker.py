"""What the tests run in processes of their own, to be killed: ``python worker.py <task> <path> ...``."""

from __future__ import annotations

import os
import signal
import struct
import sys

from svc.errors import SvcError
from svc.hashing import ObjectKind, hash_object
from svc.log import FileOperations, LocalFileStorage, Log, SharedCell, encode_record


def say(line: str) -> None:
    print(line, flush=True)


def framed(content: bytes, kind: ObjectKind = ObjectKind.CHUNK) -> bytes:
    return encode_record(kind, hash_object(kind, content), content, time_ms=1)


def write_cell(path: str) -> None:
    """Writes ever growing numbers until it is killed."""
    cell = SharedCell(path, 64)
    number = 0
    while True:
        number += 1
        cell.write(struct.pack("<Q", number) * 8)
        if number == 1:
            say("started")


def append(path: str, name: str, count: str) -> None:
    """Appends batches, saying where each begins once it is there."""
    with Log.open(path) as log:
        say("ready")
        for number in range(int(count)):
            contents = [f"{name}/{number}/{part}/".encode() + bytes(5000 * part) for part in range(3)]
            say(f"{log.append([framed(content) for content in contents])} {name}/{number}/0/")


class Dying(FileOperations):
    """Kills this process before, within or after its n-th call that changes the file."""

    def __init__(self, step: int, moment: str) -> None:
        self.left = step
        self.moment = moment

    def _due(self) -> bool:
        self.left -= 1
        return self.left == 0

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _around(self, call, *arguments):
        due = self._due()
        if due and self.moment == "before":
            self._die()
        result = call(*arguments)
        if due:
            self._die()
        return result

    def pwritev(self, fd, pieces, offset):
        if self.left == 1 and self.moment == "within":
            data = b"".join(pieces)
            os.pwrite(fd, data[: len(data) * 2 // 3], offset)
            self._die()
        return self._around(os.pwritev, fd, pieces, offset)

    def ftruncate(self, fd, length):
        return self._around(os.ftruncate, fd, length)

    def fsync(self, fd):
        return self._around(os.fsync, fd)

    def fdatasync(self, fd):
        return self._around(os.fdatasync, fd)


def die_while_committing(path: str, step: str, moment: str) -> None:
    """Opens, appends and commits, saying each commit that is acknowledged; dies at a step of that."""
    operations = Dying(int(step), moment)
    with Log(LocalFileStorage.open(path, operations=operations)) as log:
        log.recover()
        for number in range(3):
            log.append([framed(b"piece %d" % number + bytes(9000))])
            with log.commit_lock():
                offset = log.append([framed(b"node %d" % number), framed(b"%d" % number, ObjectKind.COMMIT)])
                log.sync()
            say(f"{offset} {number}")
    say("done")


def native_locks(path: str) -> None:
    """Under gevent: an append in a native thread and one in the hub, with the commit lock passed on."""
    from gevent import monkey

    monkey.patch_all()
    from gevent import get_hub, spawn

    with Log.open(path) as log:
        log.recover()
        pool = get_hub().threadpool
        pool.apply(log.acquire_commit_lock)
        busy = pool.spawn(log.acquire_commit_lock)
        greenlets = [spawn(log.append, [framed(b"%d" % number)]) for number in range(10)]
        threads = [pool.spawn(log.append, [framed(b"%d" % number)]) for number in range(10, 20)]
        offsets = {task.get() for task in (*greenlets, *threads)}
        assert not busy.ready()
        log.release_commit_lock()
        busy.get()
        log.release_commit_lock()
        assert len(offsets) == sum(1 for _ in log.scan(verify=True)) == 20
    say("well")


if __name__ == "__main__":
    tasks = {task.__name__: task for task in (write_cell, append, die_while_committing, native_locks)}
    try:
        tasks[sys.argv[1]](*sys.argv[2:])
    except SvcError as error:
        say(f"error {type(error).__name__}: {error.message}")
