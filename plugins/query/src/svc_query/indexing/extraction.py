"""Reading files: which parser takes one, and the values that the fields find in what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.errors import SvcError
from svc.plugin import Counter, Entry, Path, Version
from svc_query.api import Parser, ParserInput, Value
from svc_query.indexing.effective import Effective, Way
from svc_query.sources import Looks, TooManyLooks
from svc_query.values import NOT_CONVERTED

if TYPE_CHECKING:
    from svc_query.parsing import ParseResult

__all__ = ["Reading", "Values", "choose", "extract_values", "input_of", "parse_here"]

PARSED_FILES = Counter("svc_parsed_files", "Files that parsers were given, by what came of it.", ("result",))

_SHORT_ENDING = 16
_MOST_READINGS = 1_000

IN_PROCESS_BYTES = 256 * 1024
"""Files up to this size are parsed where they are indexed, by parsers that allow it."""


class Reading(NamedTuple):
    """How a file is read: parsers by what the configuration asks for, None where there is none for the file.

    ``label`` has the names of the parsers, with the encodings, as a document's row has them.
    """

    parsers: Mapping[Way, Parser | None]
    label: str

    @property
    def is_needed(self) -> bool:
        """Whether anything is read at all."""
        return any(parser is not None for parser in self.parsers.values())

    def is_quick(self, size: int) -> bool:
        """Whether the file may be parsed in this process."""
        return size <= IN_PROCESS_BYTES and all(
            parser is None or parser.in_process for parser in self.parsers.values()
        )


class Values(NamedTuple):
    """What was found in a file: values for each content field of the configuration, or a ``failure``.

    ``not_converted`` is how many values their fields could not take, by field; ``guess`` the encoding that
    was guessed.
    """

    values: list[list[Value]]
    failure: str = ""
    not_converted: Mapping[str, int] = {}
    guess: str = ""


def choose(effective: Effective, entry: Entry, name: str, parsers: Mapping[str, Parser]) -> Reading:
    """Returns how a file is read."""
    # Of the name only what stands behind a dot counts, and most names of a directory have the same there.
    ending = name.partition(".")[2]
    key = entry.content_type, ending
    found: Reading | None = effective.readings.get(key)
    if found is None or name[0] == ".":
        found = _choose(effective, entry, name, parsers)
        if name[0] != "." and len(ending) <= _SHORT_ENDING and len(effective.readings) < _MOST_READINGS:
            effective.readings[key] = found
    return found


def _choose(effective: Effective, entry: Entry, name: str, parsers: Mapping[str, Parser]) -> Reading:
    from svc_query.parsing import choose_parser

    chosen = {way: choose_parser(parsers, entry.content_type, name, way.parser) for way in effective.plans}
    names = [
        ("-" if parser is None else parser.name) + (f":{way.encoding}" if way.encoding else "")
        for way, parser in chosen.items()
    ]
    return Reading(chosen, ",".join(names))


def input_of(path: Path, entry: Entry, way: Way) -> ParserInput:
    """Returns what a parser is told of a file."""
    return ParserInput(path[-1], entry.content_type, entry.size, way.encoding)


def parse_here(version: Version, path: Path, entry: Entry, reading: Reading) -> dict[Way, Any]:
    """Parses a small file in this process; gives what each parser made of it, a ``ParseResult``.

    A file whose bytes are damaged gives a failure, too.
    """
    from svc_query.parsing import ParseResult, parse_in_process

    try:
        content = version.read_all(entry)
    except (SvcError, OSError) as error:
        failure = ParseResult(None, f"The file cannot be read: {error}")
        return dict.fromkeys(reading.parsers, failure)
    return {
        way: parse_in_process(parser, content, input_of(path, entry, way))
        for way, parser in reading.parsers.items()
        if parser is not None
    }


def extract_values(
    effective: Effective, results: Mapping[Way, ParseResult], reading: Reading, maximum_values: int
) -> Values:
    """Returns the values of the fields in what the parsers made of a file."""
    values: list[list[Value]] = [[] for _ in effective.contents]
    failures: list[str] = []
    not_converted: dict[str, int] = {}
    looks = Looks()
    guesses: list[str] = []
    for way, plans in effective.plans.items():
        result = results.get(way)
        if result is None:
            if way.parser is not None and reading.parsers.get(way) is None:
                failures.append(f"The parser {way.parser!r} is not in use.")
            continue
        if result.guess is not None:
            guesses.append(result.guess)
        PARSED_FILES.add(1, "ok" if result.failure is None else "failed")
        if result.failure is not None:
            failures.append(result.failure)
            continue
        if result.part is not None:
            failures.append(f"It was read in part: {result.part}")
        document = result.document
        for position, name, find, convert in plans:
            found = values[position]
            try:
                raws = find(document, maximum_values, looks)
            except TooManyLooks:
                failures.append(f"The fields of the file from {name!r} on would take too long to look for.")
                break
            for raw in raws:
                value = convert(raw)
                if value is NOT_CONVERTED:
                    not_converted[name] = not_converted.get(name, 0) + 1
                else:
                    found.append(value)
    guess = ", ".join(dict.fromkeys(guesses))
    return Values(values, " ".join(dict.fromkeys(failures)), not_converted, guess)


def carried_over(old: Sequence[Any], old_fields: Sequence[Any], effective: Effective) -> list[int] | None:
    """Returns where each field's values stand in an old row; None when one has to be read anew."""
    places = {field.reading: place for place, field in enumerate(old_fields)}
    if len(old) < len(old_fields):
        return None
    found = [places.get(field.reading) for field in effective.contents]
    return None if None in found else [place for place in found if place is not None]
