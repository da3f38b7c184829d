"""What is indexed of a file: what the configurations between it and the root say together.

The nearest configuration whose glob takes the file decides, for each field. Under all of them lies the
default one, so that every file has its virtual fields. The outcome is a function of a version and a path, so
that nothing need be remembered to find it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from blake3 import blake3

from svc.errors import CorruptRecord, InvalidInput
from svc.plugin import EntryKind, Hash, Path, Version
from svc_query.api import IndexType
from svc_query.default_configuration import DEFAULT_CONFIGURATION
from svc_query.index_configuration import (
    CONFIGURATION_SUFFIX,
    MAXIMUM_CONFIGURATION_BYTES,
    DirectoryConfiguration,
    parse_configuration,
)
from svc_query.indexing.keys import canonical_options
from svc_query.indexing.rows import ConfigurationRow, FieldRow, encode
from svc_query.sources import Looks, compile_source
from svc_query.values import converter

__all__ = ["ConfigurationFile", "Configurations", "Effective", "FieldPlan", "Resolver", "Way"]

_MOST_KEPT = 4_096
DEFAULT_HASH: Hash = bytes(32)
"""Stands for the content of the default configuration, which is nobody's file."""


class FieldPlan(NamedTuple):
    """How the values of a field, at its position in ``DocumentRow.values``, are made of a document.

    ``find`` is of (document, how many at most, how much may be looked at), ``convert`` of one value.
    """

    position: int
    name: str
    find: Callable[[Any, int, Looks], list[Any]]
    convert: Callable[[Any], Any]


class Way(NamedTuple):
    """How a configuration wants files read: the name of a parser, and the encoding of texts; or None."""

    parser: str | None
    encoding: str | None


class Effective:
    """All that is indexed of a file.

    Attributes:
        row: as it is stored.
        hash: of the row.
        plans: how values are made, by the way that the configuration wants files read.
        contents: fields that are not virtual, in the order of ``DocumentRow.values``.
        logging: whether failures are logged.
        readings: how files are read, by media type and the end of their name; as long as the parsers stay.
    """

    __slots__ = ("contents", "hash", "logging", "plans", "readings", "row")

    def __init__(self, row: ConfigurationRow, logging: bool, maximum_text: int) -> None:
        self.row = row
        self.hash = blake3(encode(row)).digest()
        self.logging = logging
        self.readings: dict[tuple[str | None, str], Any] = {}
        self.contents = tuple([field for field in row.fields if field.source])
        self.plans: dict[Way, list[FieldPlan]] = {}
        for position, field in enumerate(self.contents):
            plan = FieldPlan(
                position, field.name, compile_source(field.source), converter(field.value_type, maximum_text)
            )
            self.plans.setdefault(Way(field.parser, field.encoding), []).append(plan)


class ConfigurationFile(NamedTuple):
    """An ``indexes.json`` as it was found; ``problem`` says why it has no ``configuration``, or is empty."""

    configuration: DirectoryConfiguration | None
    content: bytes
    problem: str = ""


class Configurations:
    """Reads configurations and puts them together; keeps what it made."""

    def __init__(self, types: Mapping[str, IndexType], maximum_fields: int, maximum_text: int) -> None:
        self.types = types
        self._maximum_fields = maximum_fields
        self._maximum_text = maximum_text
        self._files: dict[Hash, ConfigurationFile] = {}
        self._together: dict[tuple[Hash, ...], Effective] = {}

    def parse(self, hash: Hash, content: bytes) -> ConfigurationFile:
        """Returns what a file says."""
        found = self._files.get(hash)
        if found is None:
            try:
                found = ConfigurationFile(self._parse(content), content)
            except InvalidInput as error:
                found = ConfigurationFile(None, b"", error.message)
            self._keep(hash, found)
        return found

    def read(self, version: Version, directory: Path) -> tuple[Hash, ConfigurationFile] | None:
        """Returns the hash and the content of a directory's configuration; None where it has none."""
        entry = version.get((*directory, *CONFIGURATION_SUFFIX))
        if entry is None or entry.kind is not EntryKind.FILE:
            return None
        found = self._files.get(entry.hash)
        if found is None:
            if entry.size > MAXIMUM_CONFIGURATION_BYTES:
                found = ConfigurationFile(None, b"", "It is too large.")
            else:
                try:
                    found = self.parse(entry.hash, version.read_all(entry))
                except CorruptRecord as error:
                    return entry.hash, ConfigurationFile(None, b"", f"It cannot be read: {error.message}")
            self._keep(entry.hash, found)
        return entry.hash, found

    @property
    def default(self) -> DirectoryConfiguration:
        """What lies under the configurations of all directories."""
        found = self._files.get(DEFAULT_HASH)
        if found is None:
            found = ConfigurationFile(self._parse(DEFAULT_CONFIGURATION), b"")
            self._keep(DEFAULT_HASH, found)
        assert found.configuration is not None, "the default is valid"
        return found.configuration

    def together(self, files: tuple[tuple[Hash, DirectoryConfiguration], ...]) -> Effective:
        """Returns what configurations say together, the nearest first."""
        key = tuple([hash for hash, _ in files])
        if key not in self._together:
            if len(self._together) >= _MOST_KEPT:
                self._together = {}
            self._together[key] = self._combine([configuration for _, configuration in files])
        return self._together[key]

    def _combine(self, files: list[DirectoryConfiguration]) -> Effective:
        fields: dict[str, FieldRow] = {}
        for file in files:
            for entry in file.entries.values():
                if entry.name not in fields:
                    types = tuple(
                        (name, canonical_options(options), self.types[name].format)
                        for name, options in sorted(entry.types.items())
                        if name in self.types
                    )
                    way = Way(None, None) if entry.is_virtual else Way(file.parser, file.encoding)
                    fields[entry.name] = FieldRow(
                        entry.name,
                        entry.source,
                        entry.value_type,
                        way.parser,
                        types,
                        file.compression,
                        way.encoding,
                    )
        row = ConfigurationRow(tuple(fields[name] for name in sorted(fields)))
        return Effective(row, any(file.logging for file in files), self._maximum_text)

    def _parse(self, content: bytes | Mapping[str, Any]) -> DirectoryConfiguration:
        return parse_configuration(content, self.types, maximum_fields=self._maximum_fields, strict=False)

    def _keep(self, hash: Hash, found: ConfigurationFile) -> None:
        if len(self._files) >= _MOST_KEPT:
            self._files = {}
        self._files[hash] = found


class Resolver:
    """Finds what is indexed of the files of one version."""

    def __init__(self, configurations: Configurations, version: Version) -> None:
        self._configurations = configurations
        self._version = version
        self._chains: dict[Path, tuple[tuple[int, Hash, DirectoryConfiguration], ...]] = {}

    def of(self, path: Path) -> Effective:
        """Returns what is indexed of a file: its virtual fields at least."""
        chosen = tuple(
            [
                (hash, configuration)
                for depth, hash, configuration in self.chain(path[:-1])
                if configuration.applies(path[depth:])
            ]
        )
        return self._configurations.together(chosen)

    def chain(self, directory: Path) -> tuple[tuple[int, Hash, DirectoryConfiguration], ...]:
        """Returns (depth, hash, configuration) of a directory and those above it, the nearest first.

        The last one is the default.
        """
        found = self._chains.get(directory)
        if found is None:
            if len(self._chains) >= _MOST_KEPT:
                self._chains = {}
            above = (
                self.chain(directory[:-1])
                if directory
                else ((0, DEFAULT_HASH, self._configurations.default),)
            )
            own = self._configurations.read(self._version, directory)
            if own is not None and own[1].configuration is not None:
                found = ((len(directory), own[0], own[1].configuration), *above)
            else:
                found = above
            self._chains[directory] = found
        return found
