"""What keeps the files small: merges, and the removal of what no document needs any more."""

from __future__ import annotations

import shutil
from collections.abc import Generator

from blake3 import blake3

from svc.errors import CorruptRecord
from svc_query.api import TermIndexType
from svc_query.indexing import keys
from svc_query.indexing.applying import repair_index
from svc_query.indexing.flushing import Host, index_directory
from svc_query.indexing.rows import IndexRow, encode
from svc_query.indexing.table import PATH_INDEX, PRESENCE_INDEX

__all__ = ["drop_unused", "merge", "remove_unknown_directories", "wipe"]

_ROWS_PER_STEP = 500
_WIPED = (
    keys.DOCUMENT,
    keys.PATH,
    keys.TEXT,
    keys.DEAD,
    keys.CONFIGURATION,
    keys.CONFIGURATION_HASH,
    keys.CONFIGURATION_USE,
    keys.INDEX,
    keys.WAITING,
    keys.OWNED,
    keys.FAILURE,
    keys.GUESS,
    keys.UNTAKEN,
)


def merge(host: Host) -> Generator[None, None, None]:
    """Does all merges that are worth it; each counts when it is done."""
    from svc_query.segments import merge_plan, unused_files

    dead = host.table.dead()
    for number, row in list(host.table.indexes().values()):
        ordered = _is_ordered(host, row)
        if ordered is None or row.manifest is None:
            continue
        directory = index_directory(host.directory, number)
        manifest = row.manifest
        try:
            while (plan := merge_plan(directory, manifest, dead, ordered=ordered)) is not None:
                for path in unused_files(directory, manifest):
                    path.unlink(missing_ok=True)
                for _ in plan.run():
                    yield
                found = host.table.indexes().get(row.name)
                if found is None or found[0] != number or found[1].manifest != manifest:
                    return
                manifest = found[1].manifest = plan.apply(manifest)
                host.table.set_index(number, found[1])
                yield
        except (CorruptRecord, FileNotFoundError):
            repair_index(host.table, number, row, host.at)
        yield


def _is_ordered(host: Host, row: IndexRow) -> bool | None:
    """How the segments of an index are written; None where it has none."""
    if row.name in (PATH_INDEX, PRESENCE_INDEX):
        return row.name == PATH_INDEX
    index_type = host.extensions.types.get(row.type)
    if not isinstance(index_type, TermIndexType) or index_type.format != row.format or row.problem:
        return None
    return index_type.ordered


def drop_unused(host: Host) -> Generator[None, None, None]:
    """Forgets configurations that no document has, and indexes that no configuration names."""
    table = host.table
    kept: set[tuple[str, str, str, int]] = {PATH_INDEX, PRESENCE_INDEX}
    for number, row in list(table.configurations()):
        if table.uses(number):
            for field in row.fields:
                kept.update((field.name, *one) for one in field.types)
        else:
            table.remove_configuration(number, blake3(encode(row)).digest())
    for name, (number, _) in list(table.indexes().items()):
        if name not in kept:
            table.remove_index(number)
    yield


def remove_unknown_directories(host: Host) -> None:
    """Removes the files of indexes that were dropped; their rows were gone before this transaction."""
    kept = {index_directory(host.directory, number).name for number, _ in host.table.indexes().values()}
    for path in host.directory.glob("index-*"):
        if path.name not in kept:
            shutil.rmtree(path, ignore_errors=True)


def wipe(host: Host) -> Generator[None, None, None]:
    """Removes the rows of all documents and indexes, and begins a new numbering when none is left."""
    storage = host.table.storage
    while True:
        left = _ROWS_PER_STEP
        for kind in _WIPED:
            found = []
            for key, _ in storage.scan(kind):
                found.append(key)
                if len(found) >= left:
                    break
            for key in found:
                storage.delete(key)
            left -= len(found)
            if left <= 0:
                break
        else:
            host.table.begin_anew()
            return
        host.table.change()
        yield
        storage = host.table.storage
