"""The check of ``indexes.json`` when one is stored: a bad file is refused, and the old one stays."""

from __future__ import annotations

from svc.plugin import ContentCheck, Path, PluginContext
from svc_query.api import INDEX_TYPES, PARSERS
from svc_query.configuration import QueryConfiguration
from svc_query.index_configuration import (
    CONFIGURATION_SUFFIX,
    MAXIMUM_CONFIGURATION_BYTES,
    parse_configuration,
)

__all__ = ["IndexesCheck"]


class IndexesCheck(ContentCheck):
    """Checks configurations against the index types and parsers that are in use."""

    name = "query.indexes"
    suffixes = (CONFIGURATION_SUFFIX,)
    maximum_size = MAXIMUM_CONFIGURATION_BYTES

    def check(self, path: Path, content: bytes, context: PluginContext) -> None:
        """Checks a file.

        Raises:
            InvalidInput: it is not a valid configuration; ``field`` says where.
        """
        del path
        settings = context.configuration or QueryConfiguration()
        parse_configuration(
            content,
            {name: one.value for name, one in context.extensions(INDEX_TYPES).items()},
            parsers=context.extensions(PARSERS).keys(),
            maximum_fields=settings.maximum_fields,
        )
