"""Which storage backend opens a log: chosen by the scheme of the URL that names the log.

A plain path is a file of this machine. Backends of plugins are passed in by whoever opens a database:
``plugins.registries.storage_backends.values`` is what the allowed plugins brought.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

from svc.errors import SvcError, UsageError
from svc.findings import describe_error
from svc.log.local_file import LocalFileStorage, lock_file_of, state_directory_of
from svc.log.storage import LogPlace, LogStorage, StorageBackend

__all__ = [
    "KERNEL_BACKENDS",
    "NO_BACKENDS",
    "LocalFileBackend",
    "backend_of",
    "locate",
    "open_storage",
    "scheme_of",
    "shown_location",
]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_CREDENTIALS = re.compile(r"(?<=://)[^/@?#]*@")


class LocalFileBackend:
    """The kernel's own backend: a file, by its path or as ``file:///path``."""

    scheme = "file"
    is_shared = True

    def open(self, url: str, *, read_only: bool, create: bool) -> LogStorage:
        """Opens a file; errors as ``LocalFileStorage.open``."""
        return LocalFileStorage.open(_path_of(url), read_only=read_only, create=create)

    def locate(self, url: str) -> LogPlace:
        """Returns the directory beside the file, and the file itself: its locks survive that directory."""
        path = _path_of(url)
        return LogPlace(state_directory_of(path), lock_file_of(path))


KERNEL_BACKENDS: Mapping[str, StorageBackend] = MappingProxyType({"file": LocalFileBackend()})
"""The backends that are always there, by scheme; no plugin can replace one."""

NO_BACKENDS: Mapping[str, StorageBackend] = MappingProxyType({})


def scheme_of(location: str | os.PathLike[str]) -> str | None:
    """Returns the scheme of a URL, lower case; None for a path."""
    match = _URL.match(location) if isinstance(location, str) else None
    return match[1].lower() if match is not None else None


def shown_location(location: str | os.PathLike[str]) -> str:
    """Returns how messages name a log: as it was given, without credentials that a URL may hold."""
    text = os.fspath(location)
    return text if scheme_of(text) is None else _CREDENTIALS.sub("", text, count=1)


def backend_of(
    location: str | os.PathLike[str], backends: Mapping[str, StorageBackend] = NO_BACKENDS
) -> StorageBackend:
    """Returns the backend that opens a log; raises ``UsageError``, which names the schemes that there are."""
    scheme = scheme_of(location) or "file"
    found = KERNEL_BACKENDS.get(scheme) or backends.get(scheme)
    if found is None:
        known = ", ".join(f"{name}://" for name in sorted({*KERNEL_BACKENDS, *backends}))
        raise UsageError(
            f"{shown_location(location)!r:.200} names no database that can be opened here: there is no "
            f"storage backend for {scheme}://. A database is a path, or a URL of these schemes: {known}.",
            field="database",
        )
    return found


def open_storage(
    location: str | os.PathLike[str],
    backends: Mapping[str, StorageBackend] = NO_BACKENDS,
    *,
    read_only: bool,
    create: bool,
) -> LogStorage:
    """Opens a log by its path or URL; blocks. Errors as ``backend_of`` and ``StorageBackend.open``.

    What else a backend raises is told in one sentence.
    """
    backend = backend_of(location, backends)
    try:
        return backend.open(os.fspath(location), read_only=read_only, create=create)
    except SvcError:
        raise
    except Exception as error:
        raise SvcError(f"{shown_location(location)} cannot be opened: {describe_error(error)}.") from error


def locate(
    location: str | os.PathLike[str], backends: Mapping[str, StorageBackend] = NO_BACKENDS
) -> LogPlace:
    """Returns where lies what belongs to a log, without opening it; errors as ``backend_of``."""
    return backend_of(location, backends).locate(os.fspath(location))


def _path_of(url: str) -> Path:
    scheme = scheme_of(url)
    if scheme is None:
        return Path(url)
    rest = url.partition("://")[2]
    if not rest.startswith("/"):
        raise UsageError(
            f"{url!r:.200} is no file of this machine: 'file://' comes before an absolute path.",
            field="database",
        )
    return Path(unquote(rest))
