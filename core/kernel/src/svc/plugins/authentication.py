"""The choice of the auth mode.

It fails closed: a mode that cannot be had stops the start, and no other mode ever takes its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from svc.errors import PluginMissing, UsageError
from svc.plugins.contracts import AuthContext, AuthMode
from svc.plugins.discovery import ProblemKind
from svc.plugins.enabled import EnabledPlugin, enabled_plugins, require_enabled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from svc.database import Database
    from svc.plugins.loading import Plugins

__all__ = ["SelectedAuthMode", "accepts_root_key", "select_auth_mode"]


class SelectedAuthMode(Struct, frozen=True):
    """The auth mode of a server, chosen before its database is open, with what follows ``name://``."""

    mode: AuthMode
    plugin_id: str
    argument: str

    def context(self, database: Database, plugins: Plugins) -> AuthContext:
        """Returns what the mode works with in an open database; raises as ``require_enabled``."""
        plugin = require_enabled(database, plugins, self.plugin_id, f"--auth {self.mode.name}")
        return AuthContext(database, self.argument, plugin.configuration)

    def bind(self, database: Database, plugins: Plugins) -> AuthMode:
        """Returns the object that judges the requests of one worker; raises as ``context``."""
        return self.mode.bind(self.context(database, plugins))


def select_auth_mode(plugins: Plugins, text: str) -> SelectedAuthMode:
    """Returns the auth mode that ``--auth`` names; PluginMissing also tells which plugins are out of use.

    UsageError: none is named, or the mode takes no argument and is given one.
    """
    name, separator, argument = text.strip().partition("://")
    if not name:
        raise UsageError("--auth needs the name of a mode.", field="auth")
    mode = plugins.registries.auth_modes.get(name)
    owner = plugins.registries.auth_modes.owner(name)
    if mode is None or owner is None:
        _refuse_misspelt(plugins, text)
        raise PluginMissing(_missing(plugins, name), mode=name)
    if separator and not mode.allows_argument:
        raise UsageError(f"--auth {name} takes no argument: leave out what follows its name.", field="auth")
    return SelectedAuthMode(mode, owner, argument if separator else "")


def accepts_root_key(database: Database, plugins: Plugins, key: str, auth: str | None = None) -> bool:
    """Whether a key is the root key of a database, as the auth modes see it that are enabled there.

    Every mode that has keys is asked: one that refuses decides, and a key that none accepts is refused. Where
    no enabled mode has keys, every caller is root, and so is who has the file. May block.

    Raises PluginMissing if ``auth`` names a mode that is not enabled, or an enabled plugin is out of use:
    nobody can tell what its mode would say. UsageError if a mode needs an argument that ``auth`` lacks.
    """
    named = None if auth is None else select_auth_mode(plugins, auth)
    if named is not None:
        require_enabled(database, plugins, named.plugin_id, f"--auth {named.mode.name}")
    enabled = enabled_plugins(database, plugins)
    _refuse_unknown_modes(plugins, enabled)
    present = [item for item in plugins.registries.auth_modes if item.plugin_id in enabled]
    modes = {id(item.value): item for item in present}.values()
    judges = [item for item in modes if item.value.has_keys]
    if not judges:
        return bool(modes)
    answers = []
    for item in judges:
        argument = named.argument if named is not None and named.mode is item.value else ""
        if item.value.takes_argument and not argument:
            raise UsageError(
                f"The auth mode {item.value.name!r}, which is enabled in this database, judges a key only "
                f"with its argument: give --auth {item.value.name}://... beside the key.",
                field="auth",
            )
        context = AuthContext(database, argument, enabled[item.plugin_id].configuration)
        answers.append(item.value.verify_root_key(context, key))
    return True in answers and False not in answers


def _refuse_unknown_modes(plugins: Plugins, enabled: Mapping[str, EnabledPlugin]) -> None:
    """Raises PluginMissing where a plugin that may have an auth mode can't be asked."""
    owners = {item.plugin_id for item in plugins.registries.auth_modes}
    for plugin in enabled.values():
        if plugin.problem is not None and (plugin.id in owners or plugin.id not in plugins.descriptors):
            raise PluginMissing(
                f"No root key is taken while a plugin can't be asked for it: {plugin.problem.message}",
                plugin=plugin.id,
            )


def _refuse_misspelt(plugins: Plugins, text: str) -> None:
    """Raises UsageError where a mode is meant that is here, and written otherwise."""
    name, _, argument = text.strip().partition(":")
    if plugins.registries.auth_modes.get(name.lower()) is None:
        return
    right = name.lower() + (f"://{argument.removeprefix('//')}" if argument else "")
    raise UsageError(f"--auth {text.strip()} names no mode. It is written --auth {right}.", field="auth")


def _missing(plugins: Plugins, name: str) -> str:
    for plugin_id, names in plugins.auth_modes.items():
        if name in names and plugin_id not in plugins.descriptors:
            try:
                plugins.require(plugin_id, f"--auth {name}")
            except PluginMissing as error:
                return error.message
    message = f"--auth {name} needs a plugin that is not in use here."
    known = sorted({item.value.name for item in plugins.registries.auth_modes})
    if known:
        message += f" Modes at hand: {', '.join(f'--auth {mode}' for mode in known)}."
    refused = [name for name in plugins.installed if not plugins.is_allowed(name)]
    if refused:
        message += f" Installed, but not allowed here: {', '.join(refused)}."
    reasons = [
        problem.message for problem in plugins.problems if problem.kind is not ProblemKind.CONFIGURATION
    ]
    return " ".join([message, *reasons, "'pip install' of a plugin that has the mode brings it."])
