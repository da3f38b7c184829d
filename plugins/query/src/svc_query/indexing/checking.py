"""The check of ``indexes.json`` when one is stored: a bad file is refused, and the old one stays."""

from __future__ import annotations

from svc.errors import InvalidInput, NotFound
from svc.plugin import ContentCheck, Path, PluginContext, ViewStorage
from svc_query.api import INDEX_TYPES, PARSERS
from svc_query.configuration import QueryConfiguration
from svc_query.index_configuration import (
    CONFIGURATION_SUFFIX,
    MAXIMUM_CONFIGURATION_BYTES,
    DirectoryConfiguration,
    parse_configuration,
)
from svc_query.indexing import keys
from svc_query.indexing.rows import IndexRow, decode_row
from svc_query.indexing.view import INDEX_VIEW

__all__ = ["IndexesCheck"]


class IndexesCheck(ContentCheck):
    """Checks configurations against the index types and parsers that are in use."""

    name = "query.indexes"
    suffixes = (CONFIGURATION_SUFFIX,)
    maximum_size = MAXIMUM_CONFIGURATION_BYTES

    def check(self, path: Path, content: bytes, context: PluginContext) -> None:
        """Checks a file."""
        del path
        settings = context.configuration or QueryConfiguration()
        configuration = parse_configuration(
            content,
            {name: one.value for name, one in context.extensions(INDEX_TYPES).items()},
            parsers=context.extensions(PARSERS).keys(),
            maximum_fields=settings.maximum_fields,
        )
        _refuse_too_many(configuration, context, settings.maximum_indexes)


def _refuse_too_many(configuration: DirectoryConfiguration, context: PluginContext, most: int) -> None:
    """Each index is files and memory for everybody: all directories together have so many."""
    wanted = {(entry.name, name) for entry in configuration.entries.values() for name in entry.types}
    try:
        known = context.database.view(INDEX_VIEW).read(_indexes, minimum=0)
    except NotFound:
        known = []
    if len(known) + len(wanted.difference(known)) > most:
        raise InvalidInput(
            f"The database has {len(known)} indexes, and may have {most}: too few are left for this file.",
            field="indexes",
            limit=most,
        )


def _indexes(storage: ViewStorage) -> list[tuple[str, str]]:
    rows = (decode_row(IndexRow, value) for _, value in storage.scan(keys.INDEX))
    return [(row.field, row.type) for row in rows]
