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

MOST_OPEN_OF_A_KEY = 4_000
"""The same of all rules together: they are made ready within the first request of the key."""

_LETTERS = "crudlify"

StoredRules = tuple[dict[str, str], ...]
"""Rules as they are sent and stored: objects with one member, a path glob with its flags."""


def check_rules(rules: Sequence[dict[str, str]], field: str = "rules") -> StoredRules:
    """Returns rules that are in order."""
    if len(rules) > MOST_RULES:
        raise InvalidInput(f"A key may have at most {MOST_RULES} rules.", field=field, limit=MOST_RULES)
    checked, open_segments = [], 0
    for number, rule in enumerate(rules):
        at = f"{field}[{number}]"
        if len(rule) != 1:
            raise InvalidInput('A rule is an object with one member: {"/path/**": "-r--l---"}.', field=at)
        ((glob, flags),) = rule.items()
        glob = _normal_glob(glob, at)
        open_segments += _open_segments(glob, at)
        if len(flags) != len(_LETTERS) or any(
            flag not in (letter, "-") for flag, letter in zip(flags, _LETTERS, strict=True)
        ):
            raise InvalidInput(
                f"The flags of a rule are 8 characters: the letters of {_LETTERS} in their places, or '-'.",
                field=at,
            )
        checked.append({glob: flags})
    if open_segments > MOST_OPEN_OF_A_KEY:
        raise InvalidInput(
            f"The rules of a key may have at most {MOST_OPEN_OF_A_KEY} segments from their wildcards on.",
            field=field,
            limit=MOST_OPEN_OF_A_KEY,
        )
    return tuple(checked)


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


def _open_segments(glob: str, field: str) -> int:
    """How many segments a glob has from its first wildcard on."""
    segments = [segment for segment in glob.split("/") if segment and segment != "."]
    literal = next((at for at, text in enumerate(segments) if "*" in text or "?" in text), len(segments))
    if len(segments) - literal > MOST_OPEN:
        raise InvalidInput(
            f"The glob of a rule may have at most {MOST_OPEN} segments from the first with a wildcard on.",
            field=field,
            limit=MOST_OPEN,
        )
    return len(segments) - literal
