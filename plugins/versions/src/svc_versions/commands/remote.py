"""Versions of a server."""

from __future__ import annotations

from typing import Literal, cast

import msgspec

from svc.errors import NotFound
from svc.plugin import Path
from svc_client import Client
from svc_versions.commands.store import Document, MergeRequest
from svc_versions.names import HEAD

__all__ = ["RemoteVersions"]


class RemoteVersions:
    """A ``VersionStore`` of a server."""

    def __init__(self, client: Client) -> None:
        self._versions = client.versions

    def snapshots(self) -> list[Document]:
        """All snapshots, newest first."""
        return [_document(one) for one in self._versions.snapshots()]

    def create_snapshot(
        self, name: str, metadata: Document, fork: str | None, version: str | None
    ) -> tuple[Document, bool]:
        """Makes a snapshot; returns it and whether it is new."""
        root = None if version is None else self._versions.resolve(version)
        made, is_new = self._versions.create_snapshot(name, metadata=metadata, fork=fork, version=root)
        return _document(made), is_new

    def delete_snapshot(self, name: str) -> Document:
        """Deletes a snapshot."""
        gone = self._versions.snapshot(name)
        self._versions.delete_snapshot(name)
        return {"deleted": True, "name": gone.name, "root_hash": gone.root_hash}

    def rename_snapshot(self, name: str, new_name: str) -> Document:
        """Gives a snapshot another name."""
        return _document(self._versions.rename_snapshot(name, new_name))

    def restore_snapshot(self, name: str) -> Document:
        """Makes a snapshot HEAD."""
        return _document(self._versions.restore_snapshot(name))

    def restore(self, path: Path, version: str) -> Document:
        """Puts a path back as a version has it."""
        try:
            self._versions.snapshot(version)
        except NotFound:
            done = self._versions.restore(path, version=self._versions.resolve(version))
        else:
            done = self._versions.restore(path, snapshot=version)
        answer = _document(done)
        del answer["from_snapshot"]
        return {"restored": answer.pop("restored"), "path": answer.pop("path"), "from": version, **answer}

    def forks(self) -> list[Document]:
        """The active forks, newest first."""
        return [_document(one) for one in self._versions.forks()]

    def abandoned_forks(self) -> list[Document]:
        """What is left of abandoned forks, newest first."""
        return [_document(one) for one in self._versions.abandoned_forks()]

    def create_fork(self, name: str, base: str | None) -> Document:
        """Makes a fork."""
        return _document(self._versions.create_fork(name, base=base))

    def promote_fork(self, name: str, *, force: bool) -> Document:
        """Makes a fork's state HEAD."""
        return _document(self._versions.promote_fork(name, force=force))

    def abandon_fork(self, name: str) -> Document:
        """Abandons a fork."""
        fork = self._versions.fork(name)
        return {"abandoned": True, "name": fork.name, "root_hash": self._versions.abandon_fork(name)}

    def merge(self, request: MergeRequest) -> tuple[Document, str, str]:
        """Merges; returns the answer, and how people call the source and the target."""
        done = self._versions.merge(
            request.source,
            request.into,
            strategy=cast(Literal["fail", "ours", "theirs"], request.strategy),
            message=request.message,
            dry_run=request.dry_run,
        )
        return _document(done), self._called(request.source), self._called(request.into)

    def _called(self, name: str) -> str:
        """A side of a merge as people call it: a name alone means a fork, where there is one."""
        if name == HEAD:
            return HEAD
        kind, _, rest = name.partition("/")
        if rest and kind in ("forks", "snapshots"):
            return f"{kind.removesuffix('s')} {rest}"
        is_fork = any(fork.name == name for fork in self._versions.forks())
        return f"{'fork' if is_fork else 'snapshot'} {name}"


def _document(answer: msgspec.Struct) -> Document:
    document: Document = msgspec.to_builtins(answer)
    return document
