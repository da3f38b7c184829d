"""The settings of the plugin in a database, also for the routes and modes of plugins that build on it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from svc.plugin import Database
from svc_auth_self.configuration import AuthSelfConfiguration

__all__ = ["note_settings", "refresh_seconds", "settings_of"]

_settings: WeakKeyDictionary[Database, AuthSelfConfiguration] = WeakKeyDictionary()
_DAY_S = 86_400
_DEFAULT = AuthSelfConfiguration()


def note_settings(database: Database, configuration: AuthSelfConfiguration | None) -> None:
    """Says which settings count for an open database from now on; the plugin's start does."""
    _settings[database] = configuration or _DEFAULT


def settings_of(database: Database) -> AuthSelfConfiguration:
    """Returns the settings of an open database; the defaults where the plugin was not started."""
    return _settings.get(database, _DEFAULT)


def refresh_seconds(database: Database) -> int:
    """Returns for how long a refresh token of an open database is good."""
    return settings_of(database).refresh_days * _DAY_S
