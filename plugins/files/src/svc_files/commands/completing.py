"""Paths for a shell that completes them."""

from __future__ import annotations

from collections.abc import Iterator

from svc.plugin import EntryKind, is_system_path, parse_path
from svc_cli import Source
from svc_files.commands.options import open_store

__all__ = ["paths"]


def paths(source: Source, incomplete: str) -> Iterator[str]:
    """Yields the entries of the directory that an incomplete path is in, as far as they begin like it."""
    slash = incomplete.rfind("/") + 1
    typed_directory, beginning = incomplete[:slash], incomplete[slash:]
    directory = parse_path(typed_directory)
    with open_store(source) as store:
        for info in store.children(store.stat(directory).path):
            if info.name.startswith(beginning) and not is_system_path((*directory, info.name)):
                mark = "/" if info.kind is EntryKind.DIRECTORY else ""
                yield f"{typed_directory or '/'}{info.name}{mark}"
