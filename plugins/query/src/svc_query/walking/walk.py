"""Makes the snapshot of a version: its files, and what its own configurations say of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from svc.plugin import Path, PluginContext, Version
from svc_query.configuration import QueryConfiguration
from svc_query.executing.budget import Budget
from svc_query.executing.visibility import Caller
from svc_query.indexing import EffectiveField, FieldReader
from svc_query.snapshot import Coverage, FieldUse
from svc_query.walking.version_snapshot import WalkedSnapshot

__all__ = ["walk_version"]


def walk_version(
    version: Version,
    sequence: int,
    caller: Caller,
    context: PluginContext,
    budget: Budget,
    after: Path | None = None,
) -> WalkedSnapshot:
    """Returns the files of a version that a caller may read.

    What is indexed of them is decided by the ``indexes.json`` files of the same version. Files whose parsers
    need a process of their own have no fields but the virtual ones: a request starts no processes.

    ``sequence`` is the number of a commit, for cursors.
    """
    settings = context.configuration
    if not isinstance(settings, QueryConfiguration):
        settings = QueryConfiguration()
    reader = _Reader.of_context(version, context)
    most = _most_entries(settings)
    snapshot = WalkedSnapshot(version, sequence, caller, reader.values_of, budget, most, after)
    directories = {*snapshot.configured, *(part for part, _ in caller.parts)}
    snapshot.use_coverage(_coverage(reader, snapshot.paths, directories, budget))
    return snapshot


def _most_entries(settings: QueryConfiguration) -> int:
    return settings.scan_entries


class _Reader(FieldReader):
    """A reader that also tells which files are indexed alike."""

    def kind_of(self, path: Path) -> object:
        """Returns one and the same object for files of which the same is indexed."""
        return self._resolver.of(path)

    def named(self, directory: Path) -> Iterator[EffectiveField]:
        """Yields what the configurations at and above a directory name, whether or not a file is taken."""
        for _, _, configuration in self._resolver.chain(directory):
            for entry in configuration.entries.values():
                types = tuple(sorted(entry.types))
                yield EffectiveField(entry.name, entry.source, entry.value_type, configuration.parser, types)


def _coverage(
    reader: _Reader, paths: Iterable[Path], directories: Iterable[Path], budget: Budget
) -> Coverage:
    """What is indexed of some files, and what else the configurations of directories name."""
    kinds: dict[int, tuple[object, Path]] = {}
    for path in paths:
        budget.step()
        kind = reader.kind_of(path)
        kinds.setdefault(id(kind), (kind, path))
    found: dict[str, list[EffectiveField]] = {}
    for _, path in kinds.values():
        for field in reader.fields_of(path):
            found.setdefault(field.name, []).append(field)
    seen = frozenset(found)
    for directory in sorted(directories):
        budget.step()
        for field in reader.named(directory):
            if field.name not in seen:
                found.setdefault(field.name, []).append(field)
    uses = {
        name: FieldUse(
            name,
            frozenset(one.value_type for one in fields),
            frozenset(kind for one in fields for kind in one.types),
            everywhere=False,
        )
        for name, fields in found.items()
    }
    return Coverage(uses)
