"""What export, diff, import and promote take and answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

__all__ = [
    "BackupFile",
    "BackupList",
    "BackupPreview",
    "DiffBody",
    "DiffQuery",
    "ExportBody",
    "ExportQuery",
    "ExportReport",
    "ImportBody",
    "ImportQuery",
    "ImportReport",
    "PatchReport",
    "PromoteBody",
    "Promoted",
]

RootHash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="Root hash of a version, in hex.")]
Output = Annotated[str | None, Meta(description="A file in the backup directory; null: the answer is it.")]
WithoutLost = Annotated[
    bool, Meta(description="Leave out what needs something that a repair could not save.")
]


class ExportQuery(Struct, frozen=True, kw_only=True):
    """The version: a snapshot, a root hash or a time, else HEAD."""

    snapshot: str | None = None
    version: Annotated[str | None, Meta(description="A root hash in hex.")] = None
    at: Annotated[str | None, Meta(description="When it was HEAD.")] = None
    without_lost: WithoutLost = False


class ExportBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same in a body, and where the file goes."""

    output: Output = None
    snapshot: str | None = None
    version: str | None = None
    at: str | int | None = None
    without_lost: WithoutLost = False


class ExportReport(Struct, frozen=True, kw_only=True):
    """What an export holds; ``output`` where it was written, ``left_out`` what no plugin in use declares.

    ``lost`` are the first paths that were left out because a repair could not save what they need, and
    ``lost_paths`` is their number.
    """

    output: str | UnsetType = UNSET
    files: int
    links: int = 0
    chunks: int
    directories: int
    version: RootHash
    size: int
    left_out: list[str] | UnsetType = UNSET
    lost: list[str] | UnsetType = UNSET
    lost_paths: int | UnsetType = UNSET


class DiffQuery(Struct, frozen=True, kw_only=True):
    """The versions that a patch is between, each named in any way; ``to`` is HEAD by default."""

    source: str | None = field(default=None, name="from")
    to: str | None = None


class DiffBody(DiffQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same in a body, and where the patch goes."""

    output: Output = None


class PatchReport(Struct, frozen=True, kw_only=True):
    """What a patch holds; links count as files."""

    output: str | UnsetType = UNSET
    files_added: int
    files_modified: int
    files_deleted: int
    chunks: int
    directories: int
    source: RootHash = field(name="from")
    to: RootHash
    size: int


class BackupFile(Struct, frozen=True, kw_only=True):
    """A file of the backup directory, as its first bytes describe it.

    ``kind`` is null where it is neither an export nor a patch.
    """

    name: str
    size: int
    modified_at: Annotated[int, Meta(description="Unix milliseconds.")]
    kind: Literal["export", "patch"] | None
    created_at: Annotated[int | None, Meta(description="When it was made, Unix milliseconds.")]
    base: Annotated[RootHash | None, Meta(description="Of a patch, the version that it applies to.")]


class BackupList(Struct, frozen=True):
    """The files of the backup directory, those that were changed last first; ``more`` where not all."""

    files: list[BackupFile]
    more: bool


class BackupPreview(Struct, frozen=True, kw_only=True):
    """What an import of a file would do, as its records say; their contents are verified by the import.

    ``held`` says whether the database has the version already, ``head`` whether it is HEAD. ``applies`` is
    false for a patch of another version than HEAD, which only ``force`` imports.
    """

    file: BackupFile
    version: RootHash
    files: Annotated[int, Meta(description="Files and links of the version.")]
    total_size: Annotated[int, Meta(description="Their bytes.")]
    objects: Annotated[int, Meta(description="Objects in the file.")]
    held: bool
    head: bool
    applies: bool


class ImportQuery(Struct, frozen=True, kw_only=True):
    """How a file is imported."""

    promote: Annotated[bool, Meta(description="Make the imported version HEAD.")] = False
    force: Annotated[bool, Meta(description="Apply a patch although HEAD is not its base.")] = False


class ImportBody(ImportQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file in the backup directory that is imported."""

    file: str


class ImportReport(Struct, frozen=True, kw_only=True):
    """What an import took in."""

    backup_type: str
    entries_imported: int
    chunks_imported: int
    files_imported: int
    directories_imported: int
    deletions_applied: int
    version_hash: str
    base_hash: str | None
    head_promoted: bool
    snapshots_imported: int
    system_entries_imported: int
    warnings: list[str]


class PromoteBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The root hash of the version that becomes HEAD."""

    hash: str


class Promoted(Struct, frozen=True, kw_only=True):
    """What HEAD is, and what it was before."""

    promoted: Literal[True] = True
    head: str
    version: str | UnsetType = UNSET
    previous: str
