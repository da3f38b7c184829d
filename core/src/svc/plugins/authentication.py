"""The choice of the auth mode.

It fails closed: a mode that cannot be had stops the start, and no other mode ever takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from svc.errors import PluginMissing, UsageError
from svc.plugins.contracts import AuthContext, AuthMode
from svc.plugins.discovery import ProblemKind
from svc.plugins.enabling import enabled_plugins, require_enabled

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins.loading import Plugins

__all__ = ["SelectedAuthMode", "accepts_root_key", "select_auth_mode"]


@dataclass(frozen=True, slots=True)
class SelectedAuthMode:
    """The auth mode of a server, chosen before its database is open.

    Attributes:
        mode: the mode as registered.
        plugin_id: the plugin that brought it.
        argument: what follows ``name://``, else an empty text.
    """

    mode: AuthMode
    plugin_id: str
    argument: str

    def context(self, database: Database, plugins: Plugins) -> AuthContext:
        """Returns what the mode works with in an open database.

        Raises:
            PluginMissing: the mode's plugin is not enabled in this database.
            PluginError: its settings there are not valid.
        """
        plugin = require_enabled(database, plugins, self.plugin_id, f"--auth {self.mode.name}")
        return AuthContext(database, self.argument, plugin.configuration)

    def bind(self, database: Database, plugins: Plugins) -> AuthMode:
        """Returns the object that judges the requests of one worker; errors as those of ``context``."""
        return self.mode.bind(self.context(database, plugins))


def select_auth_mode(plugins: Plugins, text: str) -> SelectedAuthMode:
    """Returns the auth mode that ``--auth`` names.

    Args:
        plugins: the outcome of the boot.
        text: a name or an alias, alone or as ``name://argument``.

    Raises:
        UsageError: the text is empty.
        PluginMissing: no plugin in use has a mode of that name; plugins that are out of use are named, since
            the mode may be one of theirs.
    """
    name, separator, argument = text.strip().partition("://")
    if not name:
        raise UsageError("--auth needs the name of a mode.", field="auth")
    mode = plugins.registries.auth_modes.get(name)
    owner = plugins.registries.auth_modes.owner(name)
    if mode is None or owner is None:
        raise PluginMissing(_missing(plugins, name), mode=name)
    return SelectedAuthMode(mode, owner, argument if separator else "")


def accepts_root_key(database: Database, plugins: Plugins, key: str) -> bool:
    """Whether a key is the root key of a database, as the auth modes see it that are enabled there.

    Every mode is asked. One that refuses the key decides, whatever the others say; a key that no mode
    accepts is refused. May block.

    Args:
        database: the open database.
        plugins: the outcome of the boot, with auth modes.
        key: what the caller gave; it is shown nowhere.
    """
    enabled = enabled_plugins(database, plugins)
    answers = []
    for item in plugins.registries.auth_modes:
        plugin = enabled.get(item.plugin_id)
        if plugin is None:
            continue
        if plugin.problem is not None:
            return False
        context = AuthContext(database, "", plugin.configuration)
        answers.append(item.value.verify_root_key(context, key))
    return True in answers and False not in answers


def _missing(plugins: Plugins, name: str) -> str:
    known = sorted({item.value.name for item in plugins.registries.auth_modes})
    message = f"--auth {name} needs a plugin that is not in use here."
    if known:
        message += f" Modes at hand: {', '.join(known)}."
    reasons = [
        problem.message for problem in plugins.problems if problem.kind is not ProblemKind.CONFIGURATION
    ]
    return " ".join([message, *reasons])
