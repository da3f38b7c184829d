"""What is indexed where: the configurations of all directories, and what they say of a path together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from copy import copy

from svc.plugin import Path, ViewStorage
from svc_query.index_configuration import DirectoryConfiguration, IndexEntry
from svc_query.indexing import keys
from svc_query.indexing.effective import Configurations
from svc_query.indexing.rows import DirectoryRow, decode_row
from svc_query.snapshot import VIRTUAL_FIELDS, Coverage, FieldUse

__all__ = ["Directories"]


class Directories:
    """The configurations of all directories, as the table knows them."""

    def __init__(self, storage: ViewStorage, configurations: Configurations) -> None:
        found: dict[bytes, DirectoryConfiguration] = {}
        for key, value in storage.scan(keys.DIRECTORY):
            row = decode_row(DirectoryRow, value)
            if not row.problem:
                configuration = configurations.parse(row.hash, row.content).configuration
                if configuration is not None:
                    found[key[1:]] = configuration
        self._default = configurations.default
        found.setdefault(b"", self._default)
        self._types = configurations.types
        self._found = found
        self._keys = sorted(found)
        self._coverages: dict[Path, Coverage] = {}

    def beside(self, more: Mapping[Path, DirectoryConfiguration]) -> Directories:
        """Returns these and others, of directories that have none here."""
        made = copy(self)
        made._found = {**{keys.key_of_path(path): one for path, one in more.items()}, **self._known()}
        made._found.setdefault(b"", self._default)
        made._keys = sorted(made._found)
        made._coverages = {}
        return made

    def knows(self, directory: Path) -> bool:
        """Whether a directory has a configuration of its own here."""
        return keys.key_of_path(directory) in self._known()

    def _known(self) -> Mapping[bytes, DirectoryConfiguration]:
        found = self._found
        return {key: one for key, one in found.items() if key} if found[b""] is self._default else found

    def at(self, directory: Path) -> DirectoryConfiguration | None:
        """Returns the configuration of a directory."""
        return self._found.get(keys.key_of_path(directory))

    def above(self, path: Path) -> Iterator[tuple[Path, DirectoryConfiguration]]:
        """Yields (directory, configuration) at and above a path, the nearest first and the default last."""
        for depth in range(len(path), -1, -1):
            found = self._found.get(keys.key_of_path(path[:depth]))
            if found is not None:
                yield path[:depth], found
        if self._found[b""] is not self._default:
            yield (), self._default

    def below(self, path: Path) -> Iterator[tuple[Path, DirectoryConfiguration]]:
        """Yields (directory, configuration) below a path, in path order."""
        prefix = keys.below_key(path)
        at = bisect_left(self._keys, prefix)
        while at < len(self._keys) and self._keys[at].startswith(prefix):
            if self._keys[at] or path:
                yield keys.path_of_key(self._keys[at]), self._found[self._keys[at]]
            at += 1

    def coverage(self, path: Path) -> Coverage:
        """Returns what is indexed at and below a path."""
        found = self._coverages.get(path)
        if found is None:
            if len(self._coverages) > 1_000:
                self._coverages = {}
            found = self._coverages[path] = self._cover(path)
        return found

    def indexes(self, path: Path) -> frozenset[tuple[str, str, str]]:
        """Returns (field, index type, options as canonical JSON) of what is indexed at and below a path."""
        uses, _ = self._uses(path)
        return frozenset(
            (name, item, keys.canonical_options(options))
            for name, entries in uses.items()
            for entry in entries
            for item, options in entry.types.items()
        )

    def _cover(self, path: Path) -> Coverage:
        uses, decided = self._uses(path)
        fields = {name: self._use(name, entries, name in decided) for name, entries in uses.items()}
        return Coverage(fields)

    def _uses(self, path: Path) -> tuple[dict[str, list[IndexEntry]], set[str]]:
        """Returns the entries of each field, and the fields that one entry decides for all files."""
        uses: dict[str, list[IndexEntry]] = {}
        decided: set[str] = set()
        for directory, configuration in self.above(path):
            if configuration.glob is None and len(directory) < len(path) - 1:
                continue
            for name, entry in configuration.entries.items():
                if name not in decided:
                    uses.setdefault(name, []).append(entry)
            if configuration.covers_all:
                decided.update(configuration.entries)
        for _, configuration in self.below(path):
            for name, entry in configuration.entries.items():
                uses.setdefault(name, []).append(entry)
        return uses, decided

    def _use(self, name: str, entries: list[IndexEntry], is_decided: bool) -> FieldUse:
        ways = {
            (
                entry.value_type,
                tuple(
                    (item, keys.canonical_options(options)) for item, options in sorted(entry.types.items())
                ),
            )
            for entry in entries
        }
        names = {item for entry in entries for item in entry.types if item in self._types}
        return FieldUse(
            name,
            frozenset(entry.value_type for entry in entries),
            frozenset(names),
            # Every file has a virtual field, also where the glob of a configuration does not take it.
            len(ways) == 1 and (is_decided or name not in VIRTUAL_FIELDS),
        )
