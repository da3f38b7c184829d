"""What a plugin is handed: its own settings, the database, and what others add to the families it drives."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from svc.plugins.enabled import enabled_plugins
from svc.plugins.families import NO_EXTENSIONS, Extension, ExtensionSource, Family

if TYPE_CHECKING:
    from svc.database import Database

__all__ = ["PluginContext", "make_context"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PluginContext:
    """What a lifecycle hook or a health check is handed: its own settings, and the database.

    Attributes:
        plugin_id: the plugin that is called.
        configuration: its validated settings, an instance of its configuration struct, or None.
        database: the open database.
        logger: the plugin's logger.
    """

    plugin_id: str
    configuration: Any
    database: Database
    logger: logging.Logger
    _source: ExtensionSource = field(default=NO_EXTENSIONS, repr=False, compare=False)

    def extensions(self, family: Family[T]) -> Mapping[str, Extension[T]]:
        """What other plugins have added to a family that this plugin drives, by name; immutable, in no time.

        Only what belongs to plugins that are in use for this database is there, as they are now: it is the
        same object until one of them is enabled, disabled or set anew. Ask again for each piece of work.
        Plugins are started before the drivers of what they extend, so that ``svc_start`` finds all of them.

        Raises:
            PluginError: the plugin does not drive the family, or the context is of ``svc_enable`` or
                ``svc_disable``.
        """
        return self._source.extensions_of(self.plugin_id, family)

    def is_current(self) -> bool:
        """Whether the plugin is enabled with these settings still. Cheap.

        A background process learns up to a second later than requests what was enabled, disabled or set
        anew. Work that begins because of a commit asks first, and waits: the settings may be older than that.
        """
        return self._source.is_current(self.plugin_id, self.configuration)

    def is_enabled(self, plugin_id: str) -> bool:
        """Whether a plugin is enabled in the database, even if this process does not have it. Cheap."""
        return plugin_id in enabled_plugins(self.database)

    def is_broken(self, plugin_id: str) -> bool:
        """Whether a plugin is enabled in the database, may be used here, and can't be: it is broken or gone.

        Nobody else has it either, as far as one can tell. One that this process was told to leave out is not
        broken. Cheap.
        """
        return self._source.is_broken(plugin_id)


def make_context(
    plugin_id: str, configuration: Any, database: Database, source: ExtensionSource = NO_EXTENSIONS
) -> PluginContext:
    """Returns the context of a plugin for a database; without a source it knows no extensions."""
    plugin_logger = logging.getLogger(f"svc.plugin.{plugin_id}")
    return PluginContext(plugin_id, configuration, database, plugin_logger, source)
