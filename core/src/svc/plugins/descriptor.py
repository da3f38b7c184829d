"""What a plugin says about itself before any of its code is needed.

A descriptor is a value in a light module that an entry point of the group ``svc.plugins`` names. The
kernel reads it at every start, so its module imports nothing but ``svc.plugins`` and ``msgspec``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from svc.errors import PluginError

__all__ = ["API_VERSION", "ENTRY_POINT_GROUP", "PLUGIN_SET_GROUP", "PluginDescriptor"]

API_VERSION = 1
"""The plugin API of this kernel. It grows by new hooks and by new arguments of hooks, which no existing
plugin notices; the number changes only when something that plugins use goes away."""

ENTRY_POINT_GROUP = "svc.plugins"
PLUGIN_SET_GROUP = "svc.plugin_sets"

_ID = re.compile(r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*")
_IMPLEMENTATION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?")
_MAXIMUM_ID_LENGTH = 100


@dataclass(frozen=True, slots=True)
class PluginDescriptor:
    """The name, version and needs of a plugin.

    Attributes:
        id: ``files`` or ``family.name``: lower-case words of letters, digits and hyphens, joined by dots.
            It equals the name of the entry point.
        version: the plugin's own version, shown to people and recorded in databases that enable it.
        summary: one line that says what the plugin adds.
        api: the lowest and the highest ``API_VERSION`` that the plugin works with, both included.
        configuration: the msgspec struct of its settings, or None when there is nothing to set. Fields
            whose type is ``svc.plugins.Secret`` are never shown.
        implementation: ``module`` or ``module:attribute``: where the hook implementations are. A module
            and an instance are used as they are; a class is instantiated without arguments.
        reload: whether the plugin may be enabled in a running server; False means that it takes part
            from the next start on. Disabling always takes effect at once.

    Raises:
        PluginError: a field is not of the form described here.
    """

    id: str
    version: str
    summary: str
    api: tuple[int, int]
    implementation: str
    configuration: type[msgspec.Struct] | None = None
    reload: bool = True

    def __post_init__(self) -> None:
        if not _is_text(self.id) or len(self.id) > _MAXIMUM_ID_LENGTH or not _ID.fullmatch(self.id):
            raise PluginError(f"The plugin id {self.id!r} is not lower-case words joined by dots.")
        for name, value in (("version", self.version), ("summary", self.summary)):
            if not _is_text(value) or not value.strip() or "\n" in value:
                raise PluginError(f"The {name} of plugin {self.id} must be one line of text.")
        if not _is_text(self.implementation) or not _IMPLEMENTATION.fullmatch(self.implementation):
            raise PluginError(
                f"The implementation of plugin {self.id} must be 'module' or 'module:attribute'."
            )
        if not _is_api_range(self.api):
            raise PluginError(f"The api of plugin {self.id} must be a pair (lowest, highest) of numbers.")
        if self.configuration is not None and not _is_struct(self.configuration):
            raise PluginError(f"The configuration of plugin {self.id} must be a subclass of msgspec.Struct.")

    @property
    def module(self) -> str:
        """The module that holds the implementation."""
        return self.implementation.partition(":")[0]

    @property
    def attribute(self) -> str | None:
        """The attribute of the module that is the implementation; None when the module itself is."""
        return self.implementation.partition(":")[2] or None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_api_range(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) for number in value)
        and 1 <= value[0] <= value[1]
    )


def _is_struct(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct)
