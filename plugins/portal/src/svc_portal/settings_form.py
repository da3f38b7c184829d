"""The settings of a plugin as fields of a form, made from their JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from svc.errors import InvalidInput

if TYPE_CHECKING:
    from svc.operations.system_models import DescribedSettings, SettingsChange
    from svc_portal.requests import Form

__all__ = ["SettingField", "change_of", "fields_of"]

_PREFIX = "setting-"
_FORGET = "forget-"
_WAS = "was-"
_YES, _NO = "true", "false"


class SettingField(Struct, frozen=True, kw_only=True):
    """A field of the form.

    Attributes:
        name: of the setting.
        field: of the input.
        kind: ``secret``, ``switch``, ``choice``, ``number``, ``list``, ``text``, ``lines`` (a longer text)
            or ``json``.
        about: what the setting is; may be empty.
        value: what the database sets, as text; empty where the default holds, and for a secret.
        is_set: whether the database sets it.
        default: what holds where nothing is set, as text; None where something must be set.
        choices: of a choice.
        least, most: limits of a number, where there are any.
        is_whole: whether a number is an integer.
        is_given: whether this server was started with it, so that what is stored does not count here.
        forget: of a secret that is set, the field that removes it.
        was: the hidden input that keeps what the field had when the form was made; None for a secret.
    """

    name: str
    field: str
    kind: str
    about: str = ""
    value: str = ""
    is_set: bool = False
    default: str | None = None
    choices: list[str] = []
    least: str | None = None
    most: str | None = None
    is_whole: bool = False
    is_given: bool = False
    forget: str | None = None
    was: str | None = None


def fields_of(described: DescribedSettings) -> list[SettingField]:
    """Returns a field for each setting, in the order of the plugin's struct."""
    schema = described.schema
    required = schema.get("required", ())
    definitions = schema.get("$defs", {})
    return [
        _field(described, name, _resolved(one, definitions), is_required=name in required)
        for name, one in schema["properties"].items()
    ]


def change_of(described: DescribedSettings, form: Form) -> SettingsChange:
    """Returns what a form changes: what it says, and the defaults of what it leaves empty.

    Only what differs from the stored settings, and from what the form was made with, is changed: so a form
    that was opened earlier takes nothing back. A secret that is left empty stays.

    Raises:
        InvalidInput: a field is not written as it should be; ``field`` names the setting.
    """
    from svc.operations.system_models import SettingsChange

    said: dict[str, Any] = {}
    unset: list[str] = []
    for one in fields_of(described):
        text = form.get(one.field)
        if one.kind not in ("text", "lines"):
            text = text.strip()
        if one.kind == "secret":
            if form.get(one.forget or ""):
                unset.append(one.name)
            elif text:
                said[one.name] = text
        elif _is_untouched(one, form):
            continue
        elif not text:
            unset += [one.name] if one.is_set else []
        else:
            value = _value(one, text)
            if not one.is_set or value != described.stored[one.name]:
                said[one.name] = value
    return SettingsChange(said, unset)


def _is_untouched(field: SettingField, form: Form) -> bool:
    if field.was is None or field.was not in form:
        return False
    # A browser sends every end of a line in its own way.
    was, text = (form.get(name).replace("\r\n", "\n") for name in (field.was, field.field))
    return was == text


def _field(
    described: DescribedSettings, name: str, schema: Mapping[str, Any], *, is_required: bool
) -> SettingField:
    kind, form = _kind(schema)
    is_set = name in described.stored
    default = None if is_required else _text(kind, schema.get("default"))
    if kind == "secret":
        default = None if is_required else ""
    value = _text(kind, described.stored[name]) if is_set and kind != "secret" else ""
    if kind == "text" and "\n" in f"{default or ''}{value}":
        kind = "lines"
    return SettingField(
        name=name,
        field=_PREFIX + name,
        kind=kind,
        about=str(schema.get("description", "")),
        value=value,
        is_set=is_set,
        default=default,
        choices=[_YES, _NO] if kind == "switch" else [str(one) for one in form.get("enum", ())],
        least=_limit(form, "minimum"),
        most=_limit(form, "maximum"),
        is_whole=form.get("type") == "integer",
        is_given=name in described.given,
        forget=_FORGET + name if kind == "secret" and is_set else None,
        was=None if kind == "secret" else _WAS + name,
    )


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with what it refers to in its place."""
    named = schema.get("$ref", "").rpartition("/")[2]
    return {**definitions.get(named, {}), **schema}


def _kind(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The kind of a field, and the part of the schema that has its limits: without that for null."""
    parts = [one for one in schema.get("anyOf", (schema,)) if one.get("type") != "null"]
    form = parts[0] if len(parts) == 1 else {}
    if form.get("writeOnly"):
        return "secret", form
    if "enum" in form:
        return ("choice" if all(isinstance(one, str) for one in form["enum"]) else "json"), form
    if form.get("type") == "array" and form.get("items", {}).get("type") == "string":
        return "list", form
    kinds = {"boolean": "switch", "integer": "number", "number": "number", "string": "text"}
    return kinds.get(form.get("type", ""), "json"), form


def _limit(schema: Mapping[str, Any], name: str) -> str | None:
    value = schema.get(name)
    return None if value is None else f"{value:.15g}"


def _text(kind: str, value: Any) -> str:
    if value is None:
        return ""
    if kind == "list" and isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _value(field: SettingField, text: str) -> Any:
    if field.kind in ("text", "choice"):
        return text
    if field.kind == "lines":
        return text.replace("\r\n", "\n")
    if field.kind == "list":
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        what = "no number" if field.kind == "number" else "no JSON"
        raise InvalidInput(f"The setting {field.name} is {what}.", field=field.name) from None
