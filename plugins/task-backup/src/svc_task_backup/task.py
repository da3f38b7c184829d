"""The task type ``backup``: a version into a file of its own, and the oldest files away.

A file is written without a name, verified as an import verifies it, and only then named. Nothing is removed
before that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from svc_tasks.api import TaskContext, TaskType

from svc.errors import InvalidInput, NotFound, SvcError
from svc.plugin import Hash, parse_hash
from svc_backup.api import backup_target, directory_in_backups, write_backup
from svc_task_backup.files import BackupFile, BackupFiles, outdated

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["BACKUP", "BackupArguments", "BackupTask"]

_STEP_BYTES = 8 << 20
_LONGEST_PATH = 4_096


class BackupArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a backup.

    Attributes:
        backup_dir: a directory in the server's backup directory; ``./backups/`` is that itself.
        retention_count: how many files of this database are kept there; 0 keeps all.
        snapshot: name of the snapshot whose version is written; None writes HEAD.
        without_lost: whether what a repair could not save is left out; else such a backup fails and names it.
        chain_length: files of a chain: an export, and patches that follow each other. 1 writes exports only.
        privileged: whether files hold system data and snapshots too, such as users, grants and settings.
    """

    backup_dir: Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST_PATH)] = "./backups/"
    retention_count: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    snapshot: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)] | None = None
    without_lost: bool = False
    chain_length: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1
    privileged: bool = False


class _Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has decided before it writes.

    Attributes:
        time: of the file.
        is_patch: whether it is a patch.
        root: the version, in hex.
        base: of a patch, the version before, in hex.
        directory: where the file goes.
    """

    time: str
    is_patch: bool
    root: str
    base: str | None
    directory: str


class BackupTask(TaskType):
    """Writes a backup, and removes the oldest ones."""

    name = "backup"
    arguments = BackupArguments

    def normalize(self, args: Mapping[str, Any], configuration: Any) -> dict[str, Any]:
        """See ``TaskType``; whether the directory may be written is seen when the task runs."""
        given = super().normalize(args, configuration)
        text = given["backup_dir"]
        if not text.isprintable() or ".." in Path(text).parts:
            raise InvalidInput(
                "The member backup_dir must name a directory in the server's backup directory.",
                field="backup_dir",
            )
        if given["privileged"] and given["chain_length"] > 1:
            raise InvalidInput(
                "A patch holds files alone: a privileged backup has no chain_length.", field="privileged"
            )
        return given

    def check(self, args: Mapping[str, Any], database: Database) -> None:
        """See ``TaskType``; refuses a directory that is none of the server's backup directory."""
        directory = directory_in_backups(database.path, args["backup_dir"], "backup_dir")
        there = next(one for one in (directory, *directory.parents) if os.path.lexists(one))
        if not there.is_dir():
            raise InvalidInput(
                "The member backup_dir must name a directory, and a file stands there.", field="backup_dir"
            )

    def run(self, context: TaskContext) -> Mapping[str, Any]:
        """Writes it; a run that was interrupted begins the same file anew, unless it has its name already."""
        arguments = msgspec.convert(dict(context.args), BackupArguments)
        database = context.database
        directory = directory_in_backups(database.path, arguments.backup_dir, "backup_dir")
        files = BackupFiles.of(directory, database.path, database.database_id)
        files.remove_partial()
        plan = _plan(context, arguments, files)
        result: dict[str, Any] = {"backup_dir": str(directory), "version": plan.root}
        if plan.root == plan.base:
            result |= {"file": None, "unchanged": True}
        else:
            file = files.named(plan.time, is_patch=plan.is_patch)
            result |= {"file": file.path.name, "kind": "patch" if plan.is_patch else "export"}
            result |= _write(context, plan, file, arguments)
        # From here on the new backup is there: only now may old ones go.
        return {**result, **_remove(context, outdated(files.all(), arguments.retention_count), directory)}


BACKUP = BackupTask()


def _plan(context: TaskContext, arguments: BackupArguments, files: BackupFiles) -> _Checkpoint:
    """Returns what is to be written; as it was decided before, where an earlier run had come so far."""
    database = context.database
    saved = context.checkpoint
    if saved is not None:
        plan = msgspec.convert(saved, type=_Checkpoint)
        if plan.directory == str(files.directory) and (
            files.named(plan.time, is_patch=plan.is_patch).path.exists() or _is_there(context, plan)
        ):
            return plan
    root = database.resolve_version(snapshot=arguments.snapshot)
    base = _base(context, arguments, files)
    now_ms = time.time_ns() // 1_000_000
    plan = _Checkpoint(
        time=files.new(now_ms, is_patch=base is not None).time,
        is_patch=base is not None,
        root=root.hex(),
        base=None if base is None else base.hex(),
        directory=str(files.directory),
    )
    context.save_checkpoint(msgspec.to_builtins(plan))
    return plan


def _is_there(context: TaskContext, plan: _Checkpoint) -> bool:
    """Whether the database still has the versions of a plan."""
    try:
        for version in (plan.root, plan.base):
            if version is not None:
                context.database.require_version(_hash(version))
    except NotFound:
        return False
    return True


def _base(context: TaskContext, arguments: BackupArguments, files: BackupFiles) -> Hash | None:
    """The version that a patch follows; None where an export is due: the chain is long enough, or broken."""
    present = files.all()
    length = 0
    for file in reversed(present):
        length += 1
        if not file.is_patch:
            break
    if arguments.chain_length <= 1 or not present or length >= arguments.chain_length:
        return None
    if arguments.without_lost and any(one.code == "database.lost" for one in context.database.findings()):
        return None  # a patch can leave nothing out
    try:
        base = backup_target(present[-1].path)
        context.database.require_version(base)
    except SvcError as error:
        context.logger.warning("A new chain begins, %s cannot be followed: %s", present[-1].path.name, error)
        return None
    return base


def _write(
    context: TaskContext, plan: _Checkpoint, file: BackupFile, arguments: BackupArguments
) -> dict[str, Any]:
    if file.path.exists():
        # A run that was killed behind the last step: the file has its name, so it is whole and verified.
        return {"size": file.path.stat().st_size}
    shown = _Shown(context, file.path.name)
    base = None if plan.base is None else _hash(plan.base)
    root = _hash(plan.root)
    report = write_backup(
        context.database,
        root,
        file.path,
        base=base,
        without_lost=arguments.without_lost,
        privileged=arguments.privileged,
        progress=shown.tell,
    )
    if "lost" in report:
        context.logger.warning("%d paths were left out: %s", report["lost_paths"], ", ".join(report["lost"]))
    counts = {name: value for name, value in report.items() if name not in ("size", "version")}
    return {"size": report["size"], "report": counts}


class _Shown:
    """Shows how far a file is, in steps, and ends it where the task shall end."""

    def __init__(self, context: TaskContext, name: str) -> None:
        self._context = context
        self._name = name
        self._told = 0
        self._total: int | None = None

    def tell(self, done: int, total: int) -> None:
        if total != self._total:
            self._total = total
            self._context.begin(total, f"writing {self._name}")
        if done - self._told >= _STEP_BYTES or done * 2 == total or done >= total:
            message = f"{'verifying' if done * 2 >= total else 'writing'} {self._name}"
            step, self._told = max(0, done - self._told), done
            self._context.advance(step, message)


def _remove(context: TaskContext, old: list[BackupFile], directory: Path) -> dict[str, Any]:
    removed: list[str] = []
    kept: list[str] = []
    for file in old:
        try:
            file.path.unlink(missing_ok=True)
        except OSError as error:
            kept.append(file.path.name)
            context.logger.warning("%s was not removed: %s", file.path.name, error.strerror)
        else:
            removed.append(file.path.name)
    if removed:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return {"removed": removed, **({"not_removed": kept} if kept else {})}


def _hash(text: str) -> Hash:
    found = parse_hash(text)
    assert found is not None, "it was a hash when it was saved"
    return found
