"""What a collection tells: while it runs, and when it has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

__all__ = ["CollectionProgress", "CollectionReport"]

CollectionProgress = Callable[[str, int, int], None]
"""Called with (phase, done, total): ``mark`` in objects (total 0: nobody knows), ``scan`` and ``sweep`` in
bytes of the log, ``wait`` in milliseconds."""


class CollectionReport(Struct, frozen=True):
    """What a collection found and did. Everything is counted, nothing estimated.

    Attributes:
        versions_scanned: different roots of user trees that were walked: the present state, those that refs
            name, and those of commits since the horizon.
        live_entries: objects that are needed.
        garbage_entries: whole records that are not; with ``dry_run`` or ``waiting`` they still stand.
        reclaimed_bytes: bytes of the log that were voided; with ``dry_run`` those that would have been.
        horizon: number of the first commit whose version is whole.
        allocated_before: bytes that the file took on its disk; None where the medium does not tell.
        waiting: why what was found dead still stands, a sentence; None when it does not.
        warning: why little space came back, a sentence; None when there is nothing to say.
    """

    versions_scanned: int = 0
    live_entries: int = 0
    garbage_entries: int = 0
    reclaimed_bytes: int = 0
    duration_ms: int = 0
    dry_run: bool = False
    horizon: int = 0
    allocated_before: int | None = None
    allocated_after: int | None = None
    waiting: str | None = None
    warning: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns it as routes and commands show it."""
        return asdict(self)
