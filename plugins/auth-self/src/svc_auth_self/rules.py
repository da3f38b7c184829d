"""The rules of scoped keys: checked when a key is made, kept as the specification writes them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from svc.errors import InvalidInput, InvalidPath
from svc.plugin import ScopedRule, parse_path

__all__ = ["MOST_RULES", "StoredRules", "check_rules", "scoped_rules"]

MOST_RULES = 1_000
MOST_GLOB_BYTES = 4_096
MOST_OPEN = 16
"""Segments of a glob from the first with a wildcard on: each is a place where a path may go on or not."""

MOST_WILDCARDS = 64
"""Wildcards of a glob, each ``*`` and each ``?``, without a ``/**`` at its end."""

MOST_WILDCARDS_OF_A_KEY = 1_000
MOST_SEGMENTS_OF_A_KEY = 8_000
MOST_BYTES_OF_A_KEY = 64 * 1024
"""Of the globs of a key together: each worker makes them ready when it first sees the key, and keeps them."""

_LETTERS = "crudlify"

StoredRules = tuple[dict[str, str], ...]
"""Rules as they are sent and stored: objects with one member, a path glob with its flags."""


def check_rules(rules: Sequence[dict[str, str]], field: str = "rules") -> StoredRules:
    """Returns rules that are in order."""
    if len(rules) > MOST_RULES:
        raise InvalidInput(f"A key may have at most {MOST_RULES} rules.", field=field, limit=MOST_RULES)
    checked = []
    for number, rule in enumerate(rules):
        at = f"{field}[{number}]"
        if len(rule) != 1:
            raise InvalidInput('A rule is an object with one member: {"/path/**": "-r--l---"}.', field=at)
        ((glob, flags),) = rule.items()
        glob = _normal_glob(glob, at)
        _check_segments(glob, at)
        if len(flags) != len(_LETTERS) or any(
            flag not in (letter, "-") for flag, letter in zip(flags, _LETTERS, strict=True)
        ):
            raise InvalidInput(
                f"The flags of a rule are 8 characters: the letters of {_LETTERS} in their places, or '-'.",
                field=at,
            )
        checked.append({glob: flags})
    _check_together([glob for rule in checked for glob in rule], field)
    return tuple(checked)


def _check_together(globs: Sequence[str], field: str) -> None:
    for most, found, what in (
        (MOST_BYTES_OF_A_KEY, sum(len(glob.encode()) for glob in globs), "bytes"),
        (MOST_SEGMENTS_OF_A_KEY, sum(len(_segments(glob)) for glob in globs), "segments"),
        (MOST_WILDCARDS_OF_A_KEY, sum(map(_wildcards, globs)), "wildcards"),
    ):
        if found > most:
            raise InvalidInput(
                f"The globs of a key may have at most {most} {what} together.", field=field, limit=most
            )


def scoped_rules(rules: StoredRules) -> tuple[ScopedRule, ...]:
    """Returns stored rules as the pipeline takes them."""
    return tuple(ScopedRule(glob, flags) for rule in rules for glob, flags in rule.items())


def _normal_glob(glob: str, field: str) -> str:
    """A glob in the normal form of paths, which are compared with it."""
    try:
        size = len(glob.encode())
    except UnicodeEncodeError:
        raise InvalidInput("The glob of a rule is not valid Unicode.", field=field) from None
    if size > MOST_GLOB_BYTES:
        raise InvalidInput(
            f"The glob of a rule may have at most {MOST_GLOB_BYTES} bytes.",
            field=field,
            limit=MOST_GLOB_BYTES,
        )
    if not glob.startswith("/"):
        raise InvalidInput("The glob of a rule begins with '/', such as /reports/**.", field=field)
    try:
        parse_path(glob)
    except InvalidPath as error:
        raise InvalidInput(f"The glob of a rule is no path: {error.message}", field=field) from None
    return unicodedata.normalize("NFC", glob)


def _check_segments(glob: str, field: str) -> None:
    segments = _segments(glob)
    literal = next((at for at, text in enumerate(segments) if "*" in text or "?" in text), len(segments))
    if len(segments) - literal > MOST_OPEN:
        raise InvalidInput(
            f"The glob of a rule may have at most {MOST_OPEN} segments from the first with a wildcard on.",
            field=field,
            limit=MOST_OPEN,
        )
    if _wildcards(glob) > MOST_WILDCARDS:
        raise InvalidInput(
            f"The glob of a rule may have at most {MOST_WILDCARDS} wildcards.",
            field=field,
            limit=MOST_WILDCARDS,
        )


def _segments(glob: str) -> list[str]:
    return [segment for segment in glob.split("/") if segment and segment != "."]


def _wildcards(glob: str) -> int:
    glob = glob.removesuffix("/**")
    return glob.count("*") + glob.count("?")
