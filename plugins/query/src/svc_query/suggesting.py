"""Proposing an ``indexes.json`` for a directory, from what some of its files hold.

Every member that several documents have becomes a field. How its values look says which types of index answer
the questions that people ask of such values; each choice comes with its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from svc.errors import InvalidInput
from svc.plugin import Path, parse_time

__all__ = ["DocumentSample", "Suggestion", "suggest_configuration"]

DocumentSample = tuple[Path, str | None, Any]
"""Path, media type and document of a file; None for one that no parser made."""

_MOST_DEPTH = 4
_MOST_FIELDS = 32
_MOST_MEMBERS = 2_000
_MOST_ELEMENTS = 50
_MOST_DISTINCT = 2_000
_LONG = 120
_SHORT = 64
_LEAST_SHARE = 0.05
_FEW_VALUES = 0.2
_ENOUGH = 40
_ALIKE = 0.9
_SECONDS = range(300_000_000, 5_000_000_000)
_MILLISECONDS = range(300_000_000_000, 5_000_000_000_000)

_TIME_NAME = re.compile(
    r"(^|_|-)(at|on|time|date|timestamp|ts|created|updated|modified|published)$|date|time", re.IGNORECASE
)
_PERSON_NAME = re.compile(
    r"(name|author|person|user|owner|artist|creator|editor|contact|maintainer)s?$", re.IGNORECASE
)
_TIME_TEXT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
_NAME_TEXT = re.compile(r"[^\W\d_][\w.'-]*( [^\W\d_][\w.'-]*){0,4}")


class Suggestion(NamedTuple):
    """A proposal: what to store as ``indexes.json``, of how many files.

    ``reasons`` say for each field why it gets its types, or none: ``field``, ``types``, ``reason``.
    """

    configuration: dict[str, Any]
    reasons: list[dict[str, Any]]
    files: int


class _Values(Struct):
    files: int = 0
    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    distinct: set[Any] = field(default_factory=set)
    characters: int = 0
    longest: int = 0
    times: int = 0
    names: int = 0
    seconds: int = 0
    milliseconds: int = 0


Source = tuple[str, ...]
"""Names of members; an empty one stands for every element."""


def suggest_configuration(
    samples: Iterable[DocumentSample], directory: Path, index_types: frozenset[str] | None = None
) -> Suggestion:
    """Returns a configuration for a directory; an ``index_types`` of None means all of this project."""
    found: dict[Source, _Values] = {}
    paths: list[Path] = []
    parsed: list[Path] = []
    for path, _, document in samples:
        paths.append(path)
        if document is None:
            continue
        parsed.append(path)
        seen: set[Source] = set()
        for source, value in _leaves(document):
            if source in found or len(found) < _MOST_MEMBERS:
                values = found.setdefault(source, _Values())
                values.files += source not in seen
                seen.add(source)
                _look_at(values, value)
    reasons: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    taken: set[str] = set()
    for source, values in _most_common(found, len(parsed)):
        name = _free_name(source, taken)
        entry, reason = _entry(name, source, values, len(parsed), index_types)
        types = [] if entry is None else entry["type"]
        reasons.append({"field": name, "types": types, "reason": reason})
        if entry is not None:
            taken.add(name)
            entries.append(_shortened(entry))
    glob, reason = _glob(parsed or paths, directory)
    reasons.insert(0, {"field": "glob", "types": [], "reason": reason})
    if not entries:
        entries = _virtual(index_types)
        why = "no file has members that could be fields: names, sizes and times only"
        reasons += [{"field": entry["name"], "types": entry["type"], "reason": why} for entry in entries]
    return Suggestion({"glob": glob, "indexes": entries}, reasons, len(paths))


def _leaves(document: Any) -> Iterable[tuple[Source, Any]]:
    waiting: list[tuple[Source, Any]] = [((), document)]
    steps = 0
    while waiting and steps < _MOST_MEMBERS:
        source, value = waiting.pop()
        steps += 1
        if isinstance(value, dict):
            if len(source) < _MOST_DEPTH:
                waiting += [
                    ((*source, key), part)
                    for key, part in value.items()
                    if isinstance(key, str) and 0 < len(key) <= _SHORT
                ]
        elif isinstance(value, list):
            if len(source) < _MOST_DEPTH:
                waiting += [((*source, ""), part) for part in value[:_MOST_ELEMENTS]]
        elif source:
            yield source, value


def _look_at(values: _Values, value: Any) -> None:
    values.count += 1
    if len(values.distinct) < _MOST_DISTINCT:
        values.distinct.add(value)
    if value is None:
        values.kinds["null"] += 1
    elif isinstance(value, bool):
        values.kinds["boolean"] += 1
    elif isinstance(value, int):
        values.kinds["integer"] += 1
        values.seconds += value in _SECONDS
        values.milliseconds += value in _MILLISECONDS
    elif isinstance(value, float):
        values.kinds["float"] += 1
    elif isinstance(value, str):
        values.kinds["string"] += 1
        values.characters += len(value)
        values.longest = max(values.longest, len(value))
        values.times += _is_time(value)
        values.names += len(value) <= _SHORT and _NAME_TEXT.fullmatch(value) is not None


def _is_time(text: str) -> bool:
    if len(text) > 40 or _TIME_TEXT.fullmatch(text) is None:
        return False
    try:
        parse_time(text.replace(" ", "T", 1))
    except InvalidInput:
        return False
    return True


def _most_common(found: dict[Source, _Values], documents: int) -> Sequence[tuple[Source, _Values]]:
    least = max(1, documents * _LEAST_SHARE)
    common = [(source, values) for source, values in found.items() if values.files >= least]
    common.sort(key=lambda item: (-item[1].files, len(item[0]), item[0]))
    return common[:_MOST_FIELDS]


def _free_name(source: Source, taken: set[str]) -> str:
    """The last member's name; with those before it where that is taken."""
    words = [step for step in source if step]
    if not words:
        words = ["value"]
    for length in range(1, len(words) + 1):
        name = ".".join(words[-length:])
        if name not in taken and not name.startswith("@"):
            return name
    number = 2
    while f"{'.'.join(words)}.{number}" in taken:
        number += 1
    return f"{'.'.join(words)}.{number}"


def _entry(
    name: str, source: Source, values: _Values, documents: int, index_types: frozenset[str] | None
) -> tuple[dict[str, Any] | None, str]:
    """The entry of a field, None for one that is better left alone, and why."""
    value_type, types, reason = _choice(name, values)
    usable = [one for one in types if index_types is None or one in index_types]
    where = f"in {values.files:,} of {documents:,} files"
    if not usable:
        return None, f"{reason} ({where}): left out"
    return {
        "name": name,
        "type": usable,
        "value_type": value_type,
        "source": list(source),
    }, f"{reason} ({where})"


def _choice(name: str, values: _Values) -> tuple[str, list[str], str]:
    """The type of the values, the types of index, and why."""
    kinds = {kind: count for kind, count in values.kinds.items() if kind != "null"}
    if not kinds:
        return "auto", [], "only null"
    if set(kinds) == {"boolean"}:
        return "boolean", ["exact"], "true or false"
    if set(kinds) == {"integer"}:
        return _whole_numbers(name, values, kinds["integer"])
    if set(kinds) <= {"integer", "float"}:
        return "float", ["exact"], "numbers: ranges and order"
    if set(kinds) != {"string"}:
        return "auto", ["exact"], "values of different kinds: " + ", ".join(sorted(kinds))
    return _strings(name, values, kinds["string"])


def _whole_numbers(name: str, values: _Values, count: int) -> tuple[str, list[str], str]:
    if _TIME_NAME.search(name) and values.milliseconds >= count * _ALIKE:
        return "timestamp", ["exact"], "times in Unix milliseconds: ranges and order"
    if _TIME_NAME.search(name) and values.seconds >= count * _ALIKE:
        return "integer", ["exact"], "times in Unix seconds, kept as numbers: ranges and order"
    return "integer", ["exact"], "whole numbers: ranges and order"


def _strings(name: str, values: _Values, count: int) -> tuple[str, list[str], str]:
    if values.times >= count * _ALIKE:
        return "timestamp", ["exact"], "dates and times: ranges and order"
    average = values.characters / count
    if average > _LONG or values.longest > 8 * _LONG:
        return "text", ["fulltext"], f"long texts, {average:,.0f} characters each: words and phrases"
    distinct = len(values.distinct)
    if distinct <= (max(8, count * _FEW_VALUES) if count >= _ENOUGH else count // 2):
        return "string", ["exact"], f"{distinct:,} different values: equality and groups"
    if values.names >= count * _ALIKE and (_PERSON_NAME.search(name) is not None):
        why = f"names, {distinct:,} different ones: also parts of them, typing errors and sound"
        return "string", ["exact", "trigram", "phonetic"], why
    if average <= _SHORT / 2 and values.longest <= 2 * _SHORT:
        return "string", ["exact", "trigram"], f"short texts, {distinct:,} different ones: also parts of them"
    return (
        "string",
        ["exact", "trigram", "fulltext"],
        f"texts of {average:,.0f} characters: equality, parts of them, and words",
    )


def _shortened(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without what is so by default."""
    if len(entry["type"]) == 1:
        entry = {**entry, "type": entry["type"][0]}
    if entry["source"] == [entry["name"]]:
        entry = {name: value for name, value in entry.items() if name != "source"}
    if entry["value_type"] == "auto":
        entry = {name: value for name, value in entry.items() if name != "value_type"}
    return entry


def _virtual(index_types: frozenset[str] | None) -> list[dict[str, Any]]:
    names = [one for one in ("exact", "trigram") if index_types is None or one in index_types]
    exact = names[:1] or ["exact"]
    entries = [{"name": "@filename", "type": names or exact}]
    return entries + [{"name": name, "type": exact} for name in ("@extension", "@size", "@updated_at")]


def _glob(paths: Sequence[Path], directory: Path) -> tuple[str, str]:
    nested = any(len(path) > len(directory) + 1 for path in paths)
    before = "**/" if nested else ""
    endings = Counter(path[-1].rpartition(".")[2] for path in paths if path and "." in path[-1].lstrip("."))
    if endings and paths:
        ending, count = endings.most_common(1)[0]
        if count >= len(paths) * _ALIKE and re.fullmatch(r"[\w-]{1,16}", ending):
            return f"{before}*.{ending}", f"{count:,} of {len(paths):,} files end in .{ending}"
    return f"{before}*", "the files have no ending in common"
