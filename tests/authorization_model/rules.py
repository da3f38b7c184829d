"""The rules, as the specification states them; some thirty lines, and slow."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

Path = tuple[str, ...]


class Grant(NamedTuple):
    """``allow`` and ``deny`` at a path, for it and all below; or for what a pattern matches from there on."""

    path: Path
    pattern: str | None
    allow: str
    deny: str


class Caller(NamedTuple):
    """Who asks: root, a user with grants, or nobody (``grants`` None) but the rules of a share key."""

    is_root: bool
    grants: tuple[Grant, ...] | None
    rules: tuple[tuple[str, str], ...]


def fits_name(part: str, name: str) -> bool:
    return fnmatchcase(name, part.replace("[", "[[]"))


def fits(glob: list[str], path: Path) -> bool:
    if not glob or not path:
        return not path and all(part == "**" for part in glob)
    if glob[0] == "**":
        return fits(glob[1:], path) or fits(glob, path[1:])
    return fits_name(glob[0], path[0]) and fits(glob[1:], path[1:])


def leads(glob: list[str], path: Path) -> bool:
    """Whether something below the path may fit."""
    if not glob or not path:
        return bool(glob)
    if glob[0] == "**":
        return True
    return fits_name(glob[0], path[0]) and leads(glob[1:], path[1:])


def split(glob: str) -> list[str]:
    return [part for part in glob.split("/") if part]


def by_rules(rules: tuple[tuple[str, str], ...], path: Path, is_directory: bool) -> set[str]:
    for glob, flags in rules:
        if fits(split(glob), path):
            return set(flags) - {"-"}
    on_the_way = is_directory and any(
        set(flags) != {"-"} and leads(split(glob), path) for glob, flags in rules
    )
    return {"r", "l"} if on_the_way else set()


def by_grants(grants: tuple[Grant, ...], letter: str, path: Path) -> bool:
    for level in range(len(path), -1, -1):
        said = [
            grant
            for grant in grants
            if grant.path == path[:level]
            and (grant.pattern is None or fits(split(grant.pattern), path[level:]))
        ]
        if any(letter in grant.deny for grant in said):
            return False
        if any(letter in grant.allow for grant in said):
            return True
    return False


def leads_on(grants: tuple[Grant, ...], path: Path) -> bool:
    """Whether something below the path may be granted to be read or listed."""
    for grant in grants:
        denied = {
            letter
            for other in grants
            if other.path == grant.path and other.pattern is None
            for letter in other.deny
        }
        if grant.pattern is not None:
            denied |= set(grant.deny)
        if not (set(grant.allow) - denied) & {"r", "l"}:
            continue
        if len(grant.path) > len(path) and grant.path[: len(path)] == path:
            return True
        if grant.pattern is not None and path[: len(grant.path)] == grant.path:
            rest, glob = path[len(grant.path) :], split(grant.pattern)
            if fits(glob, rest) or leads(glob, rest):
                return True
    return False


def may(caller: Caller, letter: str, path: Path, is_directory: bool = False) -> bool:
    if caller.rules and letter not in by_rules(caller.rules, path, is_directory):
        return False
    if caller.grants is None:
        return caller.is_root or bool(caller.rules)
    on_the_way = is_directory and letter == "l" and leads_on(caller.grants, path)
    return caller.is_root or by_grants(caller.grants, letter, path) or on_the_way
