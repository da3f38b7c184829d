"""What the commands ask of a database of versions: one protocol, for a file and for a server.

Answers are the documents of the routes, so that a command prints the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec import Struct

from svc.errors import SvcError
from svc.plugin import Path, Source, say_in_shell_words

__all__ = ["Document", "MergeRequest", "VersionStore", "open_versions"]

PLUGIN_ID = "versions"

Document = dict[str, Any]

_IN_SHELL_WORDS = {
    ("parameter", "force"): "HEAD has moved since the fork began or was last merged; merge the fork, or "
    "promote it with --force.",
}


class MergeRequest(Struct, frozen=True):
    """What is merged into what, and how."""

    source: str
    into: str
    strategy: str
    message: str | None
    dry_run: bool


class VersionStore(Protocol):
    """Snapshots and forks of one database. Methods block and raise the errors of ``svc.errors``."""

    def snapshots(self) -> list[Document]:
        """All snapshots, newest first."""

    def create_snapshot(
        self, name: str, metadata: Document, fork: str | None, version: str | None
    ) -> tuple[Document, bool]:
        """Makes a snapshot of HEAD, a fork, or whatever names a version; returns it and whether it is new."""

    def delete_snapshot(self, name: str) -> Document:
        """Deletes a snapshot."""

    def rename_snapshot(self, name: str, new_name: str) -> Document:
        """Gives a snapshot another name."""

    def restore_snapshot(self, name: str) -> Document:
        """Makes a snapshot HEAD."""

    def restore(self, path: Path, version: str) -> Document:
        """Puts a path back as a version has it: a snapshot's name first, or whatever names one."""

    def forks(self) -> list[Document]:
        """The active forks, newest first."""

    def abandoned_forks(self) -> list[Document]:
        """What is left of abandoned forks, newest first."""

    def create_fork(self, name: str, base: str | None) -> Document:
        """Makes a fork."""

    def promote_fork(self, name: str, *, force: bool) -> Document:
        """Makes a fork's state HEAD."""

    def abandon_fork(self, name: str) -> Document:
        """Abandons a fork."""

    def merge(self, request: MergeRequest) -> tuple[Document, str, str]:
        """Merges; returns the answer, and how people call the source and the target."""


@contextmanager
def open_versions(source: Source, *, read_only: bool = False) -> Iterator[VersionStore]:
    """Opens the store that a command works on; ``read_only`` opens a file for reading."""
    try:
        with source.open_store(
            PLUGIN_ID,
            local="svc_versions.commands.local:LocalVersions",
            remote="svc_versions.commands.remote:RemoteVersions",
            read_only=read_only,
        ) as store:
            yield store
    except SvcError as error:
        say_in_shell_words(error, _IN_SHELL_WORDS)
        raise
