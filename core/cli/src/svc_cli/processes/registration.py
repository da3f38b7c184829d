"""Which processes serve a database: each keeps a small file of its own, locked as long as it lives.

A lock ends with its process, however that ends, so the entry of a killed one is recognised, and removed by
the next process. Beside its entry a process publishes its findings, which count as long as the entry does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from svc.findings import Finding

__all__ = [
    "ProcessKind",
    "Published",
    "RegisteredProcess",
    "Registration",
    "published_lists",
    "registered_processes",
]

ProcessKind = Literal["worker", "background", "standby", "starting"]

_DIRECTORY = "processes"
_SIZE = 256
_ENDING = ".json"
_LIST_ENDING = ".findings"
_MOST_BYTES = 4 * 1024 * 1024


class RegisteredProcess(msgspec.Struct, frozen=True):
    """A process that uses the database; ``requests`` it has served, as it last said.

    A ``standby`` would become the background process; one that is ``starting`` hangs in a plugin.
    ``keeps_background`` says whether its server keeps one, ``unpublished`` whether it has found something
    wrong that it could not write down.
    """

    pid: int
    kind: ProcessKind
    started_ms: int
    requests: int = 0
    keeps_background: bool = False
    unpublished: bool = False


class Published(msgspec.Struct, frozen=True):
    """What a process publishes: what it finds wrong, and the plugins that it allows (None for all)."""

    findings: tuple[Finding, ...] = ()
    allowed: tuple[str, ...] | None = None


class Registration:
    """The entry of this process beside the log; where the disk is full the process works on without one."""

    def __init__(self, directory: Path, kind: ProcessKind, *, keeps_background: bool = False) -> None:
        self._directory = directory / _DIRECTORY
        self._value = RegisteredProcess(
            os.getpid(), kind, time.time_ns() // 1_000_000, keeps_background=keeps_background
        )
        self._path = self._directory / f"{os.getpid()}-{os.urandom(4).hex()}{_ENDING}"
        self._descriptor = -1
        self._published = b""
        with contextlib.suppress(OSError):
            self._directory.mkdir(mode=0o700, exist_ok=True)
            _clear(self._directory)
            self._enter()

    def update(self, *, kind: ProcessKind | None = None, requests: int | None = None) -> None:
        """Changes what the entry says; writes only what differs. Never blocks for long."""
        self._change(
            kind=self._value.kind if kind is None else kind,
            requests=self._value.requests if requests is None else requests,
        )

    def _change(self, **members: object) -> None:
        value = msgspec.structs.replace(self._value, **members)
        if value != self._value:
            self._value = value
            with contextlib.suppress(OSError):
                self._write()

    def publish(self, findings: Sequence[Finding], allowed: Iterable[str] | None) -> None:
        """Lets others read what this process finds wrong; writes only what differs. Never blocks for long."""
        if self._descriptor < 0:
            return
        names = None if allowed is None else tuple(allowed)
        content = msgspec.json.encode(Published(tuple(findings), names))
        if content == self._published:
            return
        path = self._path.with_suffix(_LIST_ENDING)
        unnamed = path.with_suffix(".part")
        try:
            with open(unnamed, "wb", opener=_private) as file:
                file.write(content)
            os.replace(unnamed, path)
        except OSError:
            # The entry has its place on the disk already, also where that is full.
            self._change(unpublished=bool(findings))
            with contextlib.suppress(OSError):
                unnamed.unlink()
            return
        self._published = content
        self._change(unpublished=False)

    def close(self) -> None:
        """Takes the entry back; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0 or os.getpid() != self._value.pid:
            return
        _remove(self._path)
        os.close(descriptor)

    def _enter(self) -> None:
        # Locked before it has its name: an entry that can be seen without a lock is an old one.
        unnamed = self._path.with_suffix(".new")
        descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._descriptor = descriptor
            self._write()
            os.rename(unnamed, self._path)
        except OSError:
            self._descriptor = -1
            os.close(descriptor)
            with contextlib.suppress(OSError):
                unnamed.unlink()
            raise

    def _write(self) -> None:
        if self._descriptor >= 0:
            os.pwrite(self._descriptor, msgspec.json.encode(self._value).ljust(_SIZE), 0)


def registered_processes(directory: Path) -> list[RegisteredProcess]:
    """Returns the living processes that have entered themselves, by kind and number."""
    found = [value for path in _entries(directory / _DIRECTORY) if (value := _read(path)) is not None]
    return sorted(found, key=lambda value: (value.kind, value.pid))


def published_lists(directory: Path, *, without: int | None = None) -> list[Published]:
    """Returns what living processes publish; of dead ones nothing is believed."""
    found = []
    for path in _entries(directory / _DIRECTORY):
        entry = _read(path)
        if entry is None or entry.pid == without:
            continue
        published = _read_list(path.with_suffix(_LIST_ENDING), entry.kind)
        if published is not None:
            found.append(published)
        if entry.unpublished:
            found.append(Published((_UNPUBLISHED,), None if published is None else published.allowed))
    return found


_UNPUBLISHED = Finding(
    "server.unpublished",
    "server",
    "A process has found something wrong, and could not write it down.",
    "Look at the log of the server, and at the disk.",
)


def _read_list(path: Path, process: str) -> Published | None:
    try:
        with open(path, "rb") as file:
            found = msgspec.json.decode(file.read(_MOST_BYTES), type=Published)
    except (OSError, msgspec.DecodeError):
        return None
    findings = (msgspec.structs.replace(item, process=item.process or process) for item in found.findings)
    return msgspec.structs.replace(found, findings=tuple(findings))


def _entries(directory: Path) -> list[Path]:
    try:
        return [path for path in directory.iterdir() if path.suffix == _ENDING]
    except OSError:
        return []


def _read(path: Path) -> RegisteredProcess | None:
    try:
        with open(path, "rb") as file:
            if _lock(file.fileno(), fcntl.LOCK_SH):
                return None
            return msgspec.json.decode(os.pread(file.fileno(), _SIZE, 0), type=RegisteredProcess)
    except (OSError, msgspec.DecodeError):
        return None


def _clear(directory: Path) -> None:
    for path in _entries(directory):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if _lock(file.fileno(), fcntl.LOCK_EX):
                _remove(path)


def _remove(entry: Path) -> None:
    for path in (entry.with_suffix(_LIST_ENDING), entry.with_suffix(".part"), entry):
        with contextlib.suppress(OSError):
            path.unlink()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
