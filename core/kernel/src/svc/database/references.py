"""Named references: roots that outlive HEAD's moves, kept as directories of the system tree.

A ref such as ``snapshots/monday`` is the entry ``/refs/snapshots/monday`` of the system tree, and its
hash is the root that it names: whatever walks the system tree reaches every version that is named.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from svc.database.version import Version
from svc.errors import InvalidInput
from svc.hashing import Hash
from svc.paths import Path
from svc.tree import Entry

__all__ = [
    "CONTINUATION",
    "HEAD_NAME",
    "REFERENCES",
    "is_reference",
    "normal_reference",
    "reference_name",
    "reference_path",
    "references",
]

HEAD_NAME = "HEAD"
REFERENCES = "refs"
MAXIMUM_NAME_LENGTH = 200
CONTINUATION = "%+"
"""Ends a segment of a long name that goes on in the directory below."""

_SEGMENT_BYTES = 240
_ESCAPES = {"%": "%25", "/": "%2F"}


def normal_reference(name: str) -> str:
    """Returns a ref's name in Unicode normalization form C: its one spelling wherever names are compared."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def reference_path(name: str) -> Path:
    """Returns where in the system tree a ref stands.

    Args:
        name: ``<kind>/<name>``; the part behind the first slash may hold any printable character. Two
            spellings of the same text are one name (Unicode normalization form C).

    Raises:
        InvalidInput: it is not of that form, or longer than 200 characters behind the slash.
    """
    kind, _, rest = normal_reference(name).partition("/")
    if not kind or not rest or len(rest) > MAXIMUM_NAME_LENGTH or not rest.isprintable():
        raise InvalidInput(
            f"A name has 1 to {MAXIMUM_NAME_LENGTH} characters and no control characters.", field="name"
        )
    segments = [""]
    for character in rest:
        escaped = _ESCAPES.get(character, character)
        if len((segments[-1] + escaped).encode()) > _SEGMENT_BYTES:
            segments[-1] += CONTINUATION
            segments.append("")
        segments[-1] += escaped
    return (REFERENCES, kind, *segments)


def reference_name(path: Path) -> str:
    """Returns the name of the ref at a path of the system tree, the reverse of ``reference_path``."""
    joined = "".join(segment.removesuffix(CONTINUATION) for segment in path[2:])
    return f"{path[1]}/{joined.replace('%2F', '/').replace('%25', '%')}"


def is_reference(path: Path) -> bool:
    """Whether a path of the system tree is that of a named ref, whose directory is a version of its own."""
    return len(path) > 2 and path[0] == REFERENCES and not path[-1].endswith(CONTINUATION)


def references(system: Version, kind: str | None = None) -> Iterator[tuple[str, Hash]]:
    """Yields (name, root) of the refs in a system tree; of one kind (``snapshots``) if it is given."""
    kinds = [kind] if kind is not None else [name for name, _ in _entries_of(system, (REFERENCES,))]
    for one in kinds:
        pending: list[Path] = [(REFERENCES, one)]
        while pending:
            base = pending.pop()
            for name, entry in _entries_of(system, base):
                if name.endswith(CONTINUATION):
                    pending.append((*base, name))
                else:
                    yield reference_name((*base, name)), entry.hash


def _entries_of(version: Version, path: Path) -> list[tuple[str, Entry]]:
    return [] if version.get(path) is None else list(version.entries(path))
