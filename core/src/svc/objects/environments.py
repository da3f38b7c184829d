"""LMDB environments, opened once a process and directory.

LMDB forbids to open one environment twice in a process: its file locks would be lost when one of the
two is closed. Everything that keeps data in LMDB opens through here and shares.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import lmdb

from svc.errors import ReadOnly

__all__ = ["SharedEnvironment", "close_environment", "open_environment"]

_Key = tuple[int, int, int]


class SharedEnvironment:
    """An open environment with its named databases, and how many use it.

    Attributes:
        environment: the LMDB environment.
        databases: the named databases, in the order that was asked for.
        users: number of openings that are not closed yet.
    """

    def __init__(
        self, key: _Key, environment: lmdb.Environment, names: Sequence[bytes], create: bool
    ) -> None:
        self.key = key
        self.environment = environment
        self.users = 1
        self.databases = tuple(environment.open_db(name, create=create) for name in names)


_environments: dict[_Key, SharedEnvironment] = {}
_mutex = threading.Lock()


def open_environment(
    directory: Path, map_size: int, names: Sequence[bytes], read_only: bool = False
) -> SharedEnvironment:
    """Opens an environment, or shares the one that this process has open.

    Args:
        directory: where its files are; made when missing.
        map_size: largest size in bytes; address space only.
        names: names of its databases.
        read_only: the directory must hold an environment already; where it can be written, LMDB
            still keeps its table of readers there.

    Raises:
        ReadOnly: the directory cannot be written.
        lmdb.Error: its files are not an environment of this machine.
    """
    with _mutex:
        read_only = read_only and not os.access(directory, os.W_OK)
        if not read_only:
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ReadOnly("The directory beside the database cannot be written.") from error
        data = directory / "data.mdb"
        shared = _environments.get(_key_of(data)) if data.exists() else None
        if shared is not None:
            shared.users += 1
            return shared
        environment = _new_environment(directory, map_size, len(names), read_only)
        try:
            shared = SharedEnvironment(_key_of(data), environment, names, not read_only)
        except BaseException:
            environment.close()
            raise
        _environments[shared.key] = shared
        return shared


def close_environment(shared: SharedEnvironment) -> None:
    """Ends one use of an environment; the last one closes it."""
    with _mutex:
        shared.users -= 1
        if shared.users == 0:
            _environments.pop(shared.key, None)
            shared.environment.close()


def _new_environment(directory: Path, map_size: int, databases: int, read_only: bool) -> lmdb.Environment:
    try:
        environment = lmdb.open(
            str(directory),
            map_size=map_size,
            max_dbs=databases,
            max_readers=1024,
            readonly=read_only,
            create=not read_only,
            lock=not read_only,
            sync=False,
            metasync=False,
            writemap=False,
            readahead=False,
        )
    except lmdb.ReadonlyError as error:
        raise ReadOnly("The directory beside the database cannot be written.") from error
    environment.reader_check()
    return environment


def _key_of(data: Path) -> _Key:
    status = data.stat()
    return os.getpid(), status.st_dev, status.st_ino
