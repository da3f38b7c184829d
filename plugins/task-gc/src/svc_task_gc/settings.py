"""The settings of the plugin, for who works on a database without a server."""

from __future__ import annotations

from svc.plugin import Database, read_settings
from svc_task_gc.configuration import GcConfiguration
from svc_task_gc.descriptor import PLUGIN

__all__ = ["settings_of"]


def settings_of(database: Database) -> GcConfiguration:
    """Returns the settings as they are stored in a database, or those that are there without being set."""
    settings: GcConfiguration = read_settings(PLUGIN, database)
    return settings
