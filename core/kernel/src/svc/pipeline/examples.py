"""The command that would have worked, for clients that send JSON under another media type."""

from __future__ import annotations

import json
import re
from typing import Any

import falcon
from msgspec import inspect

__all__ = ["example_of", "json_command", "upload_command"]

_HOST = re.compile(r"[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_FIELD = re.compile(r"/?\{([^}:]+)[^}]*\}")
_MORE = "..."


def json_command(req: falcon.Request, form: Any) -> str:
    """Returns a ``curl`` command that sends JSON to the route of a request.

    It shows the route as it was registered, never what the client put into it, nor its query: a path may hold
    what should not be repeated.

    Args:
        req: the request.
        form: the type of its JSON body; members that are required stand in the example.
    """
    method = "" if req.method == "POST" else f"-X {req.method} "
    body = json.dumps(example_of(form))
    return f"curl {method}--json '{body}' {_address(req)}"


def upload_command(req: falcon.Request) -> str:
    """Returns a ``curl`` command that sends a file to the route of a request; as ``json_command``."""
    return f"curl -T FILE {_address(req)}"


def _address(req: falcon.Request) -> str:
    host = req.env.get("HTTP_HOST", "")
    shown = host if _HOST.fullmatch(host) else "HOST"
    route = _FIELD.sub(lambda field: f"/{field[1].upper()}", req.uri_template or "/ROUTE")
    return f"{req.scheme}://{shown}{route}"


def example_of(form: Any) -> Any:
    """Returns the least value of a type that JSON can hold: members that are required."""
    try:
        return _value(inspect.type_info(form))
    except TypeError:
        return {}


def _value(kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.Metadata):
        return _value(kind.type)
    if isinstance(kind, inspect.UnionType):
        return _value(kind.types[0])
    if isinstance(kind, inspect.StructType):
        members = {} if kind.tag_field is None else {kind.tag_field: kind.tag}
        required = [field for field in kind.fields if field.required]
        return members | {field.encode_name: _value(field.type) for field in required}
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return [_value(kind.item_type)]
    if isinstance(kind, inspect.DictType):
        return {}
    if isinstance(kind, inspect.BoolType):
        return False
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return 0
    return _MORE
