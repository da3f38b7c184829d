"""Changes of single settings of a plugin, over those that a database has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import InvalidInput
from svc.plugins.configuration import merge_settings, without_settings
from svc.plugins.enabled import EnabledPlugin
from svc.plugins.enabling import configure

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins.descriptor import PluginDescriptor
    from svc.plugins.loading import Plugins

__all__ = ["change_settings"]


def change_settings(
    database: Database,
    plugins: Plugins,
    plugin_id: str,
    settings: Mapping[str, Any],
    unset: Iterable[str] = (),
    *,
    actor: str | None = None,
) -> EnabledPlugin:
    """Lays settings over those of an enabled plugin. Blocks; raises as ``svc.plugins.enable``.

    Of those whose dotted names are ``unset`` the defaults hold again, as far as ``settings`` does not say.
    Settings that others change meanwhile stay. Raises InvalidInput where a name of ``unset`` is no setting.
    """
    descriptor = plugins.require(plugin_id)
    names = tuple(unset)

    def changed(stored: dict[str, Any]) -> dict[str, Any]:
        known = {*_names(descriptor), *descriptor.retired, *stored}
        if any(name.partition(".")[0] not in known for name in names):
            # The name is not said again: it may be a secret at the wrong place.
            raise InvalidInput("A name in 'unset' is no setting of the plugin.", field="unset")
        return merge_settings(without_settings(stored, names), settings)

    return configure(database, plugins, plugin_id, changed, actor=actor)


def _names(descriptor: PluginDescriptor) -> Iterable[str]:
    struct = descriptor.configuration
    return () if struct is None else (field.encode_name for field in msgspec.structs.fields(struct))
