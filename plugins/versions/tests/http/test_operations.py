"""The contract of operations, for those of snapshots, forks, restore, merge and lifecycle settings."""

from __future__ import annotations

from svc.errors import AlreadyExists, Conflict, NotFound
from svc.plugin import Database
from svc_testing import OperationsContract, Teller
from svc_versions import operations as op
from svc_versions.forks import create_fork
from svc_versions.models import (
    ForkQuery,
    LifecycleChange,
    MergeBody,
    NewFork,
    NewSnapshot,
    PathRestoreBody,
    PromotionBody,
    PromotionQuery,
    ResolveQuery,
    SnapshotName,
)

from ..conftest import write  # noqa: TID252


class TestOperations(OperationsContract):
    plugin_id = "versions"

    def prepare(self, database: Database) -> None:
        write(database, {"/a.txt": "a"})
        create_fork(database, "draft")
        write(database, {"/a.txt": "of the fork"}, "draft")
        write(database, {"/a.txt": "of HEAD"})

    def story(self, call: Teller) -> None:
        version = call(op.resolve_version, ResolveQuery("HEAD")).version
        call.refused(NotFound, op.resolve_version, ResolveQuery("none"))
        assert call(op.create_snapshot, NewSnapshot("one", {"k": 1})).created
        assert not call(op.create_snapshot, NewSnapshot("two", version=version)).created
        call.refused(AlreadyExists, op.create_snapshot, NewSnapshot("one"))
        call.refused(NotFound, op.create_snapshot, NewSnapshot("of-fork", fork="none"))
        assert call(op.list_snapshots).snapshots == call(op.list_snapshot_array)
        call(op.show_snapshot, "one")
        call.refused(NotFound, op.show_snapshot, "none")
        call(op.restore_snapshot, SnapshotName("one"))
        call.refused(NotFound, op.restore_snapshot, SnapshotName("none"))
        self._forks(call)
        call(op.restore_path, ("a.txt",), PathRestoreBody(snapshot="one"))
        call.refused(NotFound, op.restore_path, ("none",), PathRestoreBody(version=version))
        call(op.promote_fork, "draft", PromotionQuery(force=True))
        call(op.change_lifecycle, LifecycleChange(snapshot_writes_enabled=False))
        call(op.show_lifecycle)
        call.refused(Conflict, op.create_snapshot, NewSnapshot("three"))
        call.refused(Conflict, op.restore_snapshot, SnapshotName("one"))
        call.refused(Conflict, op.restore_path, ("a.txt",), PathRestoreBody(snapshot="one"))
        call(op.change_lifecycle, LifecycleChange(snapshot_writes_enabled=True))
        call(op.rename_snapshot, "one", SnapshotName("uno"))
        call.refused(AlreadyExists, op.rename_snapshot, "uno", SnapshotName(self._other(call)))
        call(op.delete_snapshot, "uno")

    def _forks(self, call: Teller) -> None:
        call(op.create_fork, NewFork("a/b"))
        call.refused(AlreadyExists, op.create_fork, NewFork("a/b"))
        call.refused(NotFound, op.create_fork, NewFork("c", base="none"))
        assert call(op.list_forks).forks == call(op.list_fork_array)
        call(op.show_fork, "a/b")
        call(op.merge_versions, MergeBody("a/b", dry_run=True))
        call.refused(NotFound, op.merge_versions, MergeBody("none"))
        call(op.promote_fork, "a/b")
        call(op.promote_fork, "a/b", body=PromotionBody(force=True))
        call.refused(NotFound, op.promote_fork, "none")
        call.refused(Conflict, op.merge_versions, MergeBody("draft"))
        call.refused(Conflict, op.promote_fork, "draft")
        call(op.promote_fork, "draft", PromotionQuery(force=True))
        call(op.abandon_fork, "a/b")
        call(op.list_forks, ForkQuery(abandoned=True))

    @staticmethod
    def _other(call: Teller) -> str:
        return next(one.name for one in call(op.list_snapshots).snapshots if one.name != "uno")
