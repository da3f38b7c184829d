"""What of a version is not there, by paths: a repair could not save it, and nobody stored it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from svc.database.references import HEAD_NAME
from svc.errors import CorruptRecord
from svc.hashing import Hash
from svc.paths import Path, format_path
from svc_maintenance.verification.paths import DamagedPaths
from svc_maintenance.verification.taint import Taint

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["missing_paths", "refuse_missing"]

_MOST_PATHS = 100_000
_MOST_SHOWN = 5
_MOST_TOLD = 100


def missing_paths(database: Database, root: Hash, system_root: Hash | None = None) -> dict[str, list[Path]]:
    """Returns the paths that need something that is missing, none that lies below another one.

    They are those of a version (``HEAD``), and with a system root those of its refs (by their names) and of
    the system tree (``system``) too.

    Reads all nodes of these versions. Raises CorruptRecord where the paths are too many to be named.
    """
    taint = Taint(database.objects, lambda _offset: False)
    for one in (root, system_root):
        if one is not None:
            taint.follow(one)
    paths = DamagedPaths(taint, _MOST_PATHS)
    paths.enter(1, root, system_root)
    by_ref: dict[str, list[Path]] = {}
    for named, held in paths.finish().items():
        for one_held in held:
            by_ref.setdefault(one_held.ref, []).append(named.path)
    if not paths.is_complete:
        raise CorruptRecord(f"More than {_MOST_PATHS:,} paths need what is missing.")
    return {ref: _topmost(found) for ref, found in by_ref.items()}


def refuse_missing(missing: Mapping[str, Sequence[Path]], advice: str) -> CorruptRecord:
    """Returns the error that names what is missing, each path with the version that it is of."""
    told = [
        format_path(path) if ref == HEAD_NAME else f"{format_path(path)} of {ref}"
        for ref, paths in missing.items()
        for path in paths
    ]
    rest = len(told) - _MOST_SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    return CorruptRecord(
        f"A repair could not save what these need: {', '.join(told[:_MOST_SHOWN])}{more}. {advice}".rstrip(),
        paths=told[:_MOST_TOLD],
        lost=True,
    )


def _topmost(paths: Sequence[Path]) -> list[Path]:
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not kept or path[: len(kept[-1])] != kept[-1]:
            kept.append(path)
    return kept
