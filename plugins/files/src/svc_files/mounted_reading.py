"""What one caller reads of a mount, by the rights to the path of the user tree that it names."""

from __future__ import annotations

from svc.errors import NotFound
from svc.plugin import EMPTY_ROOT, Call, Entry, EntryKind, Hash, Operation, Path, flags_of_mask, permitted
from svc_files.access import Reading
from svc_files.mounts import Mount
from svc_files.resolving import missing

__all__ = ["MountedReading", "reading_of_mount"]

_SHOWN = Operation.LIST.bit | Operation.READ.bit


class MountedReading(Reading, frozen=True, kw_only=True):
    """What one caller reads of a mount."""

    mount: Mount

    @property
    def shown_root(self) -> Hash:
        """HEAD's version: a mount has none that can be asked for."""
        return self.context.version.root

    def sees_below(self, path: Path) -> bool:
        """See ``Reading``."""
        return super().sees_below(self.mount.origin(path))

    def permitted(self, path: Path, *, directory: bool = False) -> int:
        """See ``Reading``: what may be seen can be read and listed, and nothing else."""
        return super().permitted(self.mount.origin(path), directory=directory) & _SHOWN

    def flags_if_shown(self, path: Path, *, directory: bool) -> str | None:
        """See ``Reading``."""
        mask = permitted(self.context.identity, self.mount.origin(path), directory=directory) & _SHOWN
        return flags_of_mask(mask) if mask else None

    def may_see_deleted(self, path: Path) -> bool:
        """See ``Reading``: what was deleted is that of the user tree."""
        return False

    def find(self, path: Path, *operations: Operation, final: bool = True) -> tuple[Path, Entry]:
        """See ``Reading``; no link is followed."""
        del operations, final
        entry = self.version.get(path)
        is_directory = entry is not None and entry.kind is EntryKind.DIRECTORY
        is_listed = is_directory and bool(self.permitted(path, directory=True))
        operation = Operation.LIST if is_listed else Operation.READ
        try:
            self.context.authorize(operation, self.mount.origin(path), directory=is_directory)
        except NotFound:
            raise missing(path) from None
        if entry is None:
            raise missing(path)
        return path, entry


def reading_of_mount(call: Call, mount: Mount) -> MountedReading:
    """Returns what a caller reads of a mount, as it is now."""
    version = mount.version(call.database)
    if version is None:
        version = call.version.sibling(EMPTY_ROOT)
    return MountedReading(call, version, mount=mount)
