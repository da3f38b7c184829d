"""The values of one file of any version, without an index: for queries that walk, and for suggestions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from svc.plugin import Entry, Path, PluginContext, Version
from svc_query.api import INDEX_TYPES, PARSERS, IndexType, Parser, Value
from svc_query.configuration import QueryConfiguration
from svc_query.indexing.effective import Configurations, Effective, Resolver, Way
from svc_query.indexing.extraction import choose, extract_values, input_of, parse_here
from svc_query.parsing import ParseResult, ParserPool

__all__ = ["EffectiveField", "FieldReader"]


class EffectiveField(NamedTuple):
    """What is indexed of a file under one name; ``source`` has no steps for a virtual field.

    ``parser`` is the one that the configuration asks for, or None; ``types`` are the index types in use.
    """

    name: str
    source: tuple[str | int, ...]
    value_type: str
    parser: str | None
    types: tuple[str, ...]


class FieldReader:
    """Reads the fields of the files of one version.

    Keeps what it finds of configurations, so that many files of one directory cost little. Without ``pool``,
    files that may not be parsed in this process have no content fields.
    """

    def __init__(
        self,
        version: Version,
        types: Mapping[str, IndexType],
        parsers: Mapping[str, Parser],
        configuration: QueryConfiguration,
        pool: ParserPool | None = None,
    ) -> None:
        self._version = version
        self._parsers = parsers
        self._configuration = configuration
        self._pool = pool
        configurations = Configurations(types, configuration.maximum_fields, configuration.maximum_text)
        self._resolver = Resolver(configurations, version)

    @classmethod
    def of_context(cls, version: Version, context: PluginContext, pool: ParserPool | None = None) -> Self:
        """Returns a reader with what is in use in a database."""
        return cls(
            version,
            {name: one.value for name, one in context.extensions(INDEX_TYPES).items()},
            {name: one.value for name, one in context.extensions(PARSERS).items()},
            context.configuration or QueryConfiguration(),
            pool,
        )

    def fields_of(self, path: Path) -> Sequence[EffectiveField]:
        """Returns what is indexed of a file, sorted by name."""
        effective = self._resolver.of(path)
        return [
            EffectiveField(
                field.name, field.source, field.value_type, field.parser, tuple(one[0] for one in field.types)
            )
            for field in effective.row.fields
        ]

    def values_of(self, path: Path, entry: Entry) -> Mapping[str, list[Value]]:
        """Returns the values of the content fields of a file; one that it does not have is not there.

        A file that cannot be read has none. Blocks while a child process parses, if there is a pool.
        """
        effective = self._resolver.of(path)
        if not effective.plans:
            return {}
        return self._read(effective, path, entry)

    def _read(self, effective: Effective, path: Path, entry: Entry) -> Mapping[str, list[Value]]:
        reading = choose(effective, entry, path[-1], self._parsers)
        if not reading.is_needed:
            return {}
        results: dict[Way, ParseResult]
        if reading.is_quick(entry.size):
            results = parse_here(self._version, path, entry, reading)
        elif self._pool is None:
            return {}
        else:
            results = {
                way: self._pool.parse(parser, self._version.read(entry), input_of(path, entry, way))
                for way, parser in reading.parsers.items()
                if parser is not None
            }
        found = extract_values(effective, results, reading, self._configuration.maximum_values)
        return {
            field.name: values
            for field, values in zip(effective.contents, found.values, strict=True)
            if values
        }
