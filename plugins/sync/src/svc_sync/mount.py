"""``/.conflicts``: the contents that have lost, as files beside the others."""

from __future__ import annotations

from svc.plugin import Database, Path, Version
from svc_files.api import Mount
from svc_sync.exchange.losers import CONFLICTS, Losers, origin_of

__all__ = ["ConflictsMount"]


class ConflictsMount(Mount):
    """For each path with a conflict a directory, with a file for each version that is not shown there."""

    name = CONFLICTS

    def version(self, database: Database) -> Version | None:
        """See ``Mount``."""
        return Losers(database).version

    def origin(self, path: Path) -> Path:
        """See ``Mount``: who may not see a path may not see what has lost there."""
        return origin_of(path)
