"""What somebody decides about the conflicts of a merge, path by path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from svc.errors import Conflict, InvalidInput
from svc.plugin import Entry, EntryKind, MergeConflict, MergeStrategy, Path, format_path, parse_path
from svc_versions.models import Resolution
from svc_versions.tree_edits import Edit

__all__ = ["Resolved", "resolve"]

_MOST_NAMES = 100


class Resolved(Struct, frozen=True):
    """What a merge does about its conflicts.

    Attributes:
        edits: what changes of the target.
        texts: new contents by path; their edits have what stands there in both places.
        open: conflicts that nobody has decided.
    """

    edits: list[Edit]
    texts: dict[Path, bytes]
    open: list[MergeConflict]


def resolve(
    conflicts: Sequence[MergeConflict],
    shown: Iterable[MergeConflict],
    resolutions: Sequence[Resolution],
    strategy: MergeStrategy,
    taken: Callable[[Path], bool],
) -> Resolved:
    """Returns what is to be done about conflicts, where the merged tree has our side of each.

    Args:
        conflicts: all of them.
        shown: those that the caller may see, and so decide.
        resolutions: what the caller has decided.
        strategy: what decides about the others.
        taken: whether one of the sides has something at a path.

    Raises:
        InvalidInput: a path is no conflict, or is decided twice, or not in such a way.
        Conflict: a side is not what the caller has seen.
    """
    known = {one.path: one for one in shown}
    decided = {parse_path(one.path): one for one in resolutions}
    if len(decided) != len(resolutions):
        raise InvalidInput("A path is resolved twice.", field="resolutions")
    edits: list[Edit] = []
    texts: dict[Path, bytes] = {}
    for path, resolution in decided.items():
        if path not in known:
            raise InvalidInput(
                "The path is no conflict of this merge.", field="resolutions", path=format_path(path)
            )
        _check_seen(resolution, known[path])
        edits += _edits(resolution, known[path], taken, texts)
    rest = [one for one in conflicts if one.path not in decided]
    if strategy == "theirs":
        edits += [Edit(one.path, one.ours, one.theirs) for one in rest]
    return Resolved(edits, texts, rest if strategy == "fail" else [])


def _edits(
    resolution: Resolution, conflict: MergeConflict, taken: Callable[[Path], bool], texts: dict[Path, bytes]
) -> list[Edit]:
    path = conflict.path
    if resolution.take == "theirs" or (resolution.take == "both" and conflict.ours is None):
        return [Edit(path, conflict.ours, conflict.theirs)]
    if resolution.take == "both" and conflict.theirs is not None:
        return [Edit(_free_path(path, taken), None, conflict.theirs, source=path)]
    if resolution.take == "text":
        if resolution.content is None:
            raise InvalidInput(
                "A text is taken without its content.", field="resolutions", path=resolution.path
            )
        if any(
            one is not None and one.kind is not EntryKind.FILE for one in (conflict.ours, conflict.theirs)
        ):
            raise InvalidInput("Only a file can be a text.", field="resolutions", path=resolution.path)
        texts[path] = resolution.content.encode()
        return [Edit(path, conflict.ours, conflict.ours or conflict.theirs)]
    return []


def _free_path(path: Path, taken: Callable[[Path], bool]) -> Path:
    """Where their side stands beside ours: ``a (theirs).txt``, or with a number where that is taken."""
    stem, dot, ending = path[-1].rpartition(".")
    if not stem:
        stem, dot, ending = path[-1], "", ""
    for number in range(1, _MOST_NAMES):
        label = "theirs" if number == 1 else f"theirs {number}"
        name = (*path[:-1], f"{stem} ({label}){dot}{ending}")
        if not taken(name):
            return name
    raise Conflict("There is no free name for their side.", path=format_path(path))


def _check_seen(resolution: Resolution, conflict: MergeConflict) -> None:
    for seen, entry in ((resolution.ours, conflict.ours), (resolution.theirs, conflict.theirs)):
        if seen is not None and seen != _hash_of(entry):
            raise Conflict(
                "The path has changed since you looked at it: look at the conflicts again.",
                path=format_path(conflict.path),
            )


def _hash_of(entry: Entry | None) -> str:
    return "" if entry is None else entry.hash.hex()
