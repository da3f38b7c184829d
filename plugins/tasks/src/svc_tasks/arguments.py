"""Checks of task types and of the arguments of tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import InvalidInput, PluginError, SvcError

if TYPE_CHECKING:
    from svc.plugin import Database
    from svc_tasks.api import TaskType

__all__ = ["MAXIMUM_ARGUMENTS", "checked", "fault_of_task_type", "normalized", "validated_arguments"]

MAXIMUM_ARGUMENTS = 16 * 1024
"""Bytes of the arguments of a task, as JSON."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAXIMUM_NAME = 64
_PLACE = re.compile(r"^(?P<message>.*?)(?: - at `\$\.?(?P<field>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"missing required field `(?P<field>[^`]+)`")
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]+)`")


def fault_of_task_type(thing: object) -> str | None:
    """Returns what is wrong with a thing as a task type, or None."""
    from svc_tasks.api import TaskType

    if not isinstance(thing, TaskType):
        return "it is no TaskType"
    name: Any = getattr(thing, "name", None)
    if not isinstance(name, str) or len(name) > _MAXIMUM_NAME or not _NAME.fullmatch(name):
        return "its name is not lower-case words joined by hyphens"
    flags: tuple[Any, ...] = (thing.exclusive, thing.trigger)
    if not all(isinstance(flag, bool) for flag in flags):
        return "exclusive and trigger are true or false"
    kind: Any = thing.arguments
    if kind is not None and not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return "its arguments are no subclass of msgspec.Struct"
    return None


def validated_arguments(task_type: TaskType, args: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments as the struct of a type has them, defaults filled in.

    Raises InvalidInput, whose ``field`` names one that is unknown, missing, or of a wrong type.
    """
    kind = task_type.arguments
    known = () if kind is None else kind.__struct_encode_fields__
    for name in args:
        if name not in known:
            raise InvalidInput(f"Tasks of the type {task_type.name!r} take no {name!r}.", field=str(name))
    if kind is None:
        return {}
    try:
        return dict(msgspec.to_builtins(msgspec.convert(dict(args), kind)))
    except msgspec.ValidationError as error:
        message, field = _explained(error)
        raise InvalidInput(f"{message}.", field=field) from None


def checked(
    task_type: TaskType, args: Mapping[str, Any], configuration: Any, database: Database
) -> dict[str, Any]:
    """Returns what a type makes of arguments that it has nothing against in a database.

    Raises what the type says of them, and InvalidInput where it could not check them.
    """
    made = normalized(task_type, args, configuration)
    with _own_failures(task_type):
        task_type.check(made, database)
    return made


def normalized(task_type: TaskType, args: Mapping[str, Any], configuration: Any) -> dict[str, Any]:
    """Returns what a type makes of arguments; what goes wrong in it is an InvalidInput of this call alone."""
    with _own_failures(task_type):
        result = task_type.normalize(args, configuration)
        encoded = msgspec.json.encode(result)
        decoded = msgspec.json.decode(encoded)
    if not isinstance(decoded, dict):
        raise InvalidInput(f"The task type {task_type.name!r} made no object of the arguments.", field="args")
    if len(encoded) > MAXIMUM_ARGUMENTS:
        raise InvalidInput(
            f"The arguments take more than {MAXIMUM_ARGUMENTS} bytes.", field="args", limit=MAXIMUM_ARGUMENTS
        )
    return decoded


@contextmanager
def _own_failures(task_type: TaskType) -> Iterator[None]:
    """Makes an error of the request of what goes wrong in a type."""
    try:
        yield
    except PluginError as error:
        raise InvalidInput(f"The arguments can't be checked: {error.message}", field="args") from error
    except SvcError:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"The task type {task_type.name!r} failed to check these arguments; the log says why.",
            field="args",
        ) from error


def _explained(error: msgspec.ValidationError) -> tuple[str, str]:
    """The message of msgspec without its notation, and the member that it speaks of."""
    place = _PLACE.match(str(error))
    message, field = (place["message"], place["field"] or "") if place else (str(error), "")
    for pattern in (_MISSING, _UNKNOWN):
        named = pattern.search(message)
        if named:
            field = f"{field}.{named['field']}" if field else named["field"]
    return message.replace("`", "'"), field or "args"
