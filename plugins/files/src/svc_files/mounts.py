"""Trees of other plugins that are shown at a name of the root directory, to be read only.

Nothing of a mount stands in the user tree: no glob, query or copy of a directory above meets it. Who may see
a path of it is decided by the rights to a path of the user tree that the mount names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from svc.errors import Forbidden
from svc.plugin import Call, Database, Extension, Family, Path, Version, format_path

__all__ = ["FILE_MOUNTS", "Mount", "mount_at", "refuse_mounted"]


class Mount(ABC):
    """A tree that is shown at a name of the root directory. Stateless: one object serves all databases.

    Attributes:
        name: of the directory; it begins with a dot.
    """

    name: ClassVar[str]

    @abstractmethod
    def version(self, database: Database) -> Version | None:
        """Returns the tree as it is now; its root directory holds ``name`` alone. None: nothing is there."""

    @abstractmethod
    def origin(self, path: Path) -> Path:
        """Returns the path of the user tree whose rights decide who may see a path of the mount.

        Args:
            path: begins with ``name``, whether anything is there or not.
        """


FILE_MOUNTS: Family[Mount] = Family("file_mounts", "mount", Mount)


def mount_at(mounts: Mapping[str, Extension[Mount]], path: Path) -> Mount | None:
    """Returns the mount that a path belongs to."""
    found = mounts.get(path[0]) if path else None
    return None if found is None else found.value


def refuse_mounted(call: Call, path: Path) -> None:
    """Raises Forbidden for a path at which something is to be written, and that belongs to a mount."""
    if path and path[0].startswith(".") and mount_at(call.extensions(FILE_MOUNTS), path) is not None:
        raise Forbidden("What is shown here can only be read.", path=format_path(path))
