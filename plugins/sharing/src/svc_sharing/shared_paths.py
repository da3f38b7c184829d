"""Which paths can be shared: those that are there, and that the rules of a key can say exactly."""

from __future__ import annotations

from collections.abc import Sequence

from svc.errors import InvalidInput, NotFound, PayloadTooLarge
from svc.plugin import (
    EntryKind,
    Path,
    ScopedRule,
    Version,
    format_path,
    is_system_path,
    parse_flags,
    parse_path,
    path_not_found,
)

__all__ = [
    "checked_permissions",
    "parsed_paths",
    "present_paths",
    "require_known",
    "root_of_rule",
    "rule_of_path",
]

_WILD = frozenset("*?")
_BELOW = "**"


def parsed_paths(texts: Sequence[str], most: int) -> list[Path]:
    """Returns the paths of a request, each once, in the order in which they came.

    Raises InvalidInput where there is none, or a bad one, PayloadTooLarge, and NotFound for one of the
    system.
    """
    if not texts:
        raise InvalidInput("At least one path is needed.", field="paths")
    if len(texts) > most:
        raise PayloadTooLarge(f"At most {most} paths are taken at once.", field="paths", limit=most)
    paths = list(dict.fromkeys(map(parse_path, texts)))
    for path in paths:
        if is_system_path(path):
            raise path_not_found(path)
    return paths


def present_paths(version: Version, paths: Sequence[Path]) -> list[tuple[Path, bool]]:
    """Returns paths with whether a directory stands there; NotFound where nothing does.

    Raises InvalidInput where a link does: what it leads to is shared by its own path.
    """
    found = []
    for path in paths:
        entry = version.get(path)
        if entry is None and path:
            raise path_not_found(path)
        if entry is not None and entry.kind is EntryKind.SYMLINK:
            raise InvalidInput(
                f"{format_path(path)} is a link; share the path that it leads to.",
                field="paths",
                path=format_path(path),
            )
        found.append((path, entry is None or entry.kind is EntryKind.DIRECTORY))
    return found


def checked_permissions(flags: str) -> str:
    """Returns the flags of a share; InvalidInput where they are malformed, or allow nothing."""
    if not parse_flags(flags):
        raise InvalidInput(
            "permissions has exactly 8 characters, the letters crudlify or '-' in their places, and at least "
            "one letter.",
            field="permissions",
        )
    return flags


def rule_of_path(path: Path, is_directory: bool, flags: str) -> dict[str, str]:
    """Returns the rule of a key that is for this path alone, and for what is below a directory.

    Rules are globs without a way to quote: a name with ``*`` or ``?`` would open others as well, so it is an
    InvalidInput.
    """
    if any(_WILD & set(name) for name in path):
        raise InvalidInput(
            "A link cannot be for a path with '*' or '?' in it: it would open others too. Rename it or share "
            "the directory above.",
            field="paths",
            path=format_path(path),
        )
    return {format_path((*path, _BELOW) if is_directory else path): flags}


def root_of_rule(rule: ScopedRule) -> Path | None:
    """Returns the path that a rule of ``rule_of_path`` is for; None for any other rule."""
    names = tuple(name for name in rule.glob.split("/") if name)
    if names[-1:] == (_BELOW,):
        names = names[:-1]
    return None if any(_WILD & set(name) for name in names) else names


def require_known(found: object, what: str, name: str, field: str) -> None:
    """Raises NotFound where nothing was found by a name."""
    if found is None:
        raise NotFound(f"There is no {what} {name[:200]!r}.", field=field)
