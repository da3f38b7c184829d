"""Settings of plugins: from plain members to the plugin's struct and back, without ever showing a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import msgspec

from svc.errors import PluginError
from svc.plugins.descriptor import PluginDescriptor, StartOption
from svc.plugins.secret import HIDDEN, Secret, decode_secret, encode_hidden, encode_revealed

if TYPE_CHECKING:
    from svc.plugins.loading import Plugins

__all__ = [
    "FLAGS",
    "checked_assignment",
    "merge_settings",
    "option_settings",
    "parse_assignments",
    "require_fitting_options",
    "settings_as_shown",
    "settings_as_stored",
    "validate_settings",
    "without_settings",
]

FLAGS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
"""How true and false are spelled as options."""

_PLACE = re.compile(r"^(?P<message>.*?)(?: - at `\$\.?(?P<field>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"missing required field `(?P<field>[^`]+)`")


def validate_settings(descriptor: PluginDescriptor, settings: Mapping[str, Any]) -> Any:
    """Returns the settings as an instance of the plugin's struct, defaults filled in; None without a struct.

    ``settings`` are members as JSON gives them. Types are strict: ``"8080"`` is no integer. PluginError names
    the wrong or missing ``field``, and does not show its value.
    """
    if descriptor.configuration is None:
        if settings:
            raise _refusal(descriptor, next(iter(settings)), "the plugin has no settings")
        return None
    return _convert(descriptor, settings, strict=True)


def parse_assignments(descriptor: PluginDescriptor, assignments: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Reads settings that were typed as text, by the types of the plugin's fields: dotted names and texts.

    A text is taken as it is where the field is one; else it is JSON (``8080``, ``true``, ``["a", "b"]``).
    """
    settings: dict[str, Any] = {}
    for name, text in assignments:
        kind = _field_type(descriptor, name)
        settings = merge_settings(settings, _nested(name.split("."), _typed(kind, text)))
    return settings


def checked_assignment(descriptor: PluginDescriptor, name: str, text: str) -> dict[str, Any]:
    """Reads one setting as ``parse_assignments`` does; PluginError where its field refuses the value.

    What the settings are together is not looked at: others may come from a database.
    """
    annotation = _annotation(descriptor, name)
    value = _typed(_described(annotation), text)
    try:
        converted = msgspec.convert(value, annotation, dec_hook=decode_secret)
    except msgspec.ValidationError as error:
        message, field = _message_and_field(error)
        raise _refusal(descriptor, ".".join(filter(None, (name, field))), message) from None
    unknown = _unknown(converted, value, f"{name}.")
    if unknown is not None:
        raise _refusal(descriptor, unknown, "there is no such setting")
    return _nested(name.split("."), value)


def option_settings(descriptor: PluginDescriptor, option: StartOption, value: Any) -> dict[str, Any]:
    """Returns the setting that an option of ``svc start`` makes of a value; a ValueError does not show it."""
    assert descriptor.configuration is not None
    name = option.target
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("it must not hold NUL")
        value = _typed_option(_field_type(descriptor, name), value)
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(descriptor.configuration)}
    try:
        converted = msgspec.convert(value, fields[name], dec_hook=decode_secret)
    except msgspec.ValidationError as error:
        message = _without_value(str(error))
        raise ValueError(message[:1].lower() + message[1:]) from None
    if option.check is not None:
        option.check(converted)
    return {name: msgspec.to_builtins(value)}


def merge_settings(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ``base`` with ``changes`` laid over it; members that are objects on both sides are merged."""
    merged = dict(base)
    for name, value in changes.items():
        present = merged.get(name)
        if isinstance(present, Mapping) and isinstance(value, Mapping):
            merged[name] = merge_settings(present, value)
        else:
            merged[name] = value
    return merged


def without_settings(base: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Returns ``base`` without the members of the given dotted names, so that their defaults hold again."""
    result = dict(base)
    for name in names:
        first, _, rest = name.partition(".")
        if rest and isinstance(result.get(first), Mapping):
            result[first] = without_settings(result[first], [rest])
        elif not rest:
            result.pop(first, None)
    return result


def settings_as_stored(configuration: Any) -> dict[str, Any]:
    """The settings as plain members, secrets included: for the record in the system tree and nothing else."""
    return _members(configuration, encode_revealed)


def settings_as_shown(configuration: Any) -> dict[str, Any]:
    """The settings as plain members, with stars in the place of each secret: for output of any kind."""
    return _members(configuration, encode_hidden)


def hide_all(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Names of settings with stars for every value: no struct is at hand to tell which of them are secret."""
    return dict.fromkeys(settings, HIDDEN)


def require_fitting_options(plugins: Plugins, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises PluginError where the deployment's options make good settings of a plugin bad.

    ``settings`` are those of a database, by plugin. Bad ones are not the options' fault, and pass.
    """
    for plugin_id, own in settings.items():
        descriptor, options = plugins.descriptors.get(plugin_id), plugins.overrides.get(plugin_id)
        if descriptor is None or not options or not _is_valid(descriptor, own):
            continue
        try:
            validate_settings(descriptor, merge_settings(own, options))
        except PluginError as error:
            names = ", ".join(f"{plugin_id}.{name}" for name in options)
            raise PluginError(f"{error.message} Given at the start: {names}.", **error.details) from None


def _members(configuration: Any, hook: Any) -> dict[str, Any]:
    if configuration is None:
        return {}
    members: dict[str, Any] = msgspec.to_builtins(configuration, enc_hook=hook)
    return members


def _is_valid(descriptor: PluginDescriptor, settings: Mapping[str, Any]) -> bool:
    try:
        validate_settings(descriptor, settings)
    except PluginError:
        return False
    return True


def _convert(descriptor: PluginDescriptor, settings: Mapping[str, Any], *, strict: bool) -> Any:
    assert descriptor.configuration is not None
    try:
        configuration = msgspec.convert(
            dict(settings), descriptor.configuration, strict=strict, dec_hook=decode_secret
        )
    except msgspec.ValidationError as error:
        message, field = _message_and_field(error)
        raise _refusal(descriptor, field, message) from None
    unknown = _unknown(configuration, settings)
    if unknown is not None:
        raise _refusal(descriptor, unknown, "there is no such setting")
    return configuration


def _message_and_field(error: msgspec.ValidationError) -> tuple[str, str]:
    """What msgspec says of a value, without the value, and the dotted name of the field."""
    match = _PLACE.match(str(error))
    message, field = (match["message"], match["field"] or "") if match else (str(error), "")
    missing = _MISSING.search(message)
    if missing:
        return "it is required and not given", ".".join(filter(None, (field, missing["field"])))
    return _without_value(message), field


def _without_value(message: str) -> str:
    """A message of msgspec without the value that it may quote: it could be a secret in the wrong place."""
    return re.sub(r"'.*'", "given", message, flags=re.DOTALL)


def _unknown(configuration: Any, settings: Any, prefix: str = "") -> str | None:
    """Returns the dotted name of the first member without a field in the struct; msgspec would ignore it."""
    if isinstance(configuration, msgspec.Struct) and isinstance(settings, Mapping):
        fields = {field.encode_name: field.name for field in msgspec.structs.fields(configuration)}
        for name, value in settings.items():
            if name not in fields:
                return prefix + str(name)
            found = _unknown(getattr(configuration, fields[name]), value, f"{prefix}{name}.")
            if found is not None:
                return found
    elif isinstance(configuration, Mapping) and isinstance(settings, Mapping):
        for name, value in settings.items():
            found = _unknown(configuration.get(name), value, f"{prefix}{name}.")
            if found is not None:
                return found
    elif isinstance(configuration, (list, tuple)) and isinstance(settings, (list, tuple)):
        for place, (item, value) in enumerate(zip(configuration, settings, strict=False)):
            found = _unknown(item, value, f"{prefix}{place}.")
            if found is not None:
                return found
    return None


def _field_type(descriptor: PluginDescriptor, name: str) -> msgspec.inspect.Type:
    return _described(_annotation(descriptor, name))


def _described(annotation: Any) -> msgspec.inspect.Type:
    kind = msgspec.inspect.type_info(annotation)
    return kind.type if isinstance(kind, msgspec.inspect.Metadata) else kind


def _annotation(descriptor: PluginDescriptor, name: str) -> Any:
    """The annotation of the field that a dotted name means."""
    if descriptor.configuration is None:
        raise _refusal(descriptor, name, "the plugin has no settings")
    annotation: Any = descriptor.configuration
    for part in name.split("."):
        kind = _described(annotation)
        if isinstance(kind, msgspec.inspect.DictType):
            bare = annotation.__origin__ if get_origin(annotation) is Annotated else annotation
            annotation = next(iter(get_args(bare)[1:]), Any)
            continue
        if not isinstance(kind, msgspec.inspect.StructType):
            raise _refusal(descriptor, name, "there is no such setting")
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind.cls)}
        if part not in fields:
            raise _refusal(descriptor, name, "there is no such setting")
        annotation = fields[part]
    return annotation


def _typed(kind: msgspec.inspect.Type, text: str) -> Any:
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    if all(_is_textual(item) or isinstance(item, msgspec.inspect.NoneType) for item in kinds):
        optional = any(isinstance(item, msgspec.inspect.NoneType) for item in kinds)
        return None if optional and text == "null" else text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


def _typed_option(kind: msgspec.inspect.Type, text: str) -> Any:
    """As ``_typed``; a list of texts may be given with commas, and true and false in the usual ways."""
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    for item in kinds:
        if isinstance(item, msgspec.inspect.BoolType) and text.strip().lower() in FLAGS:
            return FLAGS[text.strip().lower()]
        if not isinstance(item, (msgspec.inspect.ListType, msgspec.inspect.VarTupleType)):
            continue
        if _is_textual(item.item_type) and not text.lstrip().startswith("["):
            return [part.strip() for part in text.split(",") if part.strip()]
    return _typed(kind, text)


def _is_textual(kind: msgspec.inspect.Type) -> bool:
    if isinstance(kind, (msgspec.inspect.LiteralType, msgspec.inspect.EnumType)):
        values = (
            kind.values
            if isinstance(kind, msgspec.inspect.LiteralType)
            else [item.value for item in kind.cls]
        )
        return all(isinstance(value, str) for value in values)
    if isinstance(kind, msgspec.inspect.CustomType):
        return kind.cls is Secret
    return isinstance(kind, msgspec.inspect.StrType)


def _nested(parts: list[str], value: Any) -> dict[str, Any]:
    for part in reversed(parts[1:]):
        value = {part: value}
    return {parts[0]: value}


def _refusal(descriptor: PluginDescriptor, field: str, reason: str) -> PluginError:
    reason = reason[:1].lower() + reason[1:]
    subject = (
        f"The setting {field!r} of the plugin {descriptor.id!r}"
        if field
        else (f"The settings of the plugin {descriptor.id!r}")
    )
    return PluginError(f"{subject} cannot be used: {reason}.", field=field, plugin=descriptor.id)
