"""Names of snapshots and forks for a shell that completes them."""

from __future__ import annotations

from collections.abc import Iterator

from svc_cli import Source
from svc_versions.operations import list_forks, list_snapshots

__all__ = ["forks", "snapshots", "versions"]


def snapshots(source: Source, _incomplete: str) -> Iterator[str]:
    """Yields the names of snapshots."""
    return (snapshot.name for snapshot in source.call(list_snapshots).snapshots)


def forks(source: Source, _incomplete: str) -> Iterator[str]:
    """Yields the names of forks."""
    return (fork.name for fork in source.call(list_forks).forks)


def versions(source: Source, incomplete: str) -> Iterator[str]:
    """Yields what names a version."""
    yield from snapshots(source, incomplete)
    yield from forks(source, incomplete)
