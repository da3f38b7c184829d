"""The arguments of a task type as fields of a form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, inspect

from svc.errors import InvalidInput, NotFound
from svc_tasks.api import TASK_TYPES, TaskType

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["ArgumentField", "arguments_of", "fields_of", "find_type", "startable_types"]

_PREFIX = "argument-"


class ArgumentField(Struct, frozen=True):
    """A field of the form.

    Attributes:
        name: of the argument.
        field: of the input.
        kind: ``switch``, ``number``, ``text`` or ``json``.
        default: what it is where nothing is said, as text; None where something must be said.
    """

    name: str
    field: str
    kind: str
    default: str | None


def startable_types(request: PortalRequest) -> list[str]:
    """Returns the names of the types that people and schedules may start."""
    types = request.plugin.extensions(TASK_TYPES)
    return sorted(name for name, one in types.items() if one.value.trigger)


def find_type(request: PortalRequest, name: str) -> TaskType:
    """Returns a type that may be started.

    Raises:
        NotFound: there is none of this name.
    """
    if name not in startable_types(request):
        raise NotFound("There is no such type of tasks that can be started.")
    return request.plugin.extensions(TASK_TYPES)[name].value


def fields_of(task_type: TaskType) -> list[ArgumentField]:
    """Returns the fields for the arguments of a type; one for all where it has no struct of them."""
    if task_type.arguments is None:
        return []
    kind: Any = inspect.type_info(task_type.arguments)
    return [
        ArgumentField(one.encode_name, _PREFIX + one.encode_name, _kind(one.type), _default(one))
        for one in kind.fields
    ]


def arguments_of(request: PortalRequest, task_type: TaskType) -> dict[str, Any]:
    """Returns the arguments that a form says; what is empty is left to the defaults.

    Raises:
        InvalidInput: one is not written as it should be.
    """
    found: dict[str, Any] = {}
    for one in fields_of(task_type):
        text = request.form.get(one.field)
        if one.kind == "switch":
            found[one.name] = bool(text)
        elif text:
            found[one.name] = text if one.kind == "text" else _value(one.name, text)
    return found


def _value(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise InvalidInput(f"The argument {name} is no number, and no JSON.", field=name) from None


def _kind(kind: Any) -> str:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    others = [one for one in getattr(kind, "types", ()) if not isinstance(one, inspect.NoneType)]
    if isinstance(kind, inspect.UnionType) and len(others) == 1:
        return _kind(others[0])
    if isinstance(kind, inspect.BoolType):
        return "switch"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return "number"
    return "text" if isinstance(kind, inspect.StrType) else "json"


def _default(field: Any) -> str | None:
    if field.required:
        return None
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
