"""What people are told of the settings of a plugin: their JSON Schema, made from the plugin's struct."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import PluginError
from svc.plugins.configuration import hide_all, settings_as_shown, validate_settings
from svc.plugins.descriptor import PluginDescriptor
from svc.plugins.enabled import enabled_plugins, needed_by
from svc.plugins.secret import Secret, encode_hidden

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins.loading import Plugins

__all__ = ["describe_settings", "settings_schema"]

_ATTRIBUTE = re.compile(r"    (?P<names>\w+(?:, \w+)*): (?P<text>.*)")


def describe_settings(plugins: Plugins, database: Database, plugin_id: str) -> dict[str, Any]:
    """Returns what ``GET /system/plugins/{id}/configuration`` answers."""
    descriptor = plugins.descriptors.get(plugin_id)
    enabled = enabled_plugins(database, plugins).get(plugin_id)
    return {
        "id": plugin_id,
        "enabled": enabled is not None,
        "schema": settings_schema(descriptor),
        "stored": {} if enabled is None else _shown(descriptor, enabled.settings),
        "given": sorted(plugins.overrides.get(plugin_id, {})),
        "needs_restart": descriptor is not None and not descriptor.reload,
        "needs": [] if descriptor is None else list(descriptor.needs),
        "needed_by": needed_by(database, plugins, plugin_id),
    }


def _shown(descriptor: PluginDescriptor | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Stored settings with secrets hidden: all of them where the struct can't tell which are."""
    if descriptor is None:
        return hide_all(settings)
    try:
        shown = settings_as_shown(validate_settings(descriptor, settings))
    except PluginError:
        return hide_all(settings)
    return {name: shown[name] for name in settings}


def settings_schema(descriptor: PluginDescriptor | None) -> dict[str, Any]:
    """Returns the JSON Schema of a plugin's settings, each with what its struct says of it.

    A secret is a text with ``writeOnly``. Without settings it is an object without properties.
    """
    struct = None if descriptor is None else descriptor.configuration
    if struct is None:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    described = _descriptions(struct)
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    # Field by field: msgspec writes the defaults of a struct without a hook, and some are secrets.
    for field in msgspec.structs.fields(struct):
        one = msgspec.json.schema(field.type, schema_hook=_of_secret)
        definitions |= one.pop("$defs", {})
        if field.name in described:
            one.setdefault("description", described[field.name])
        if field.required:
            required.append(field.encode_name)
        else:
            default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            one["default"] = msgspec.to_builtins(default, enc_hook=encode_hidden)
        properties[field.encode_name] = one
    schema = {"type": "object", "properties": properties, "required": required}
    return {**schema, "additionalProperties": False, **({"$defs": definitions} if definitions else {})}


def _of_secret(kind: type) -> dict[str, Any]:
    # Of other types settings have none that JSON Schema does not know.
    return {"type": "string", "format": "password", "writeOnly": True} if kind is Secret else {}


def _descriptions(struct: type[msgspec.Struct]) -> dict[str, str]:
    """What the section ``Attributes`` of a docstring says, by name."""
    _, _, section = (inspect.getdoc(struct) or "").partition("\nAttributes:\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        match = _ATTRIBUTE.fullmatch(line)
        if match:
            names = match["names"].split(", ")
            found |= dict.fromkeys(names, match["text"])
        elif line.startswith("        ") and names:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
        else:
            names = []
    return {name: re.sub(r"`+", "", text) for name, text in found.items()}
