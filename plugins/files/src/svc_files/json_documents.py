"""JSON documents stored as files: reading, merge patch (RFC 7396) and pointers (RFC 6901).

Pure functions of values. Numbers keep their value: integers of any size, and floats as doubles.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

import msgspec

from svc.errors import InvalidInput, NotFound

__all__ = ["apply_merge_patch", "decode_json", "encode_json", "resolve_pointer"]

MAXIMUM_DEPTH = 500


class _Refused(ValueError):
    pass


def decode_json(content: bytes, what: str) -> Any:
    """Returns the value of a JSON text (RFC 8259: UTF-8, no NaN, an optional byte order mark).

    It holds the interpreter's lock to its end, some 50 ms for a megabyte at worst: what may be larger is
    decoded in a process of its own (``svc_files.json_process``).

    Raises InvalidInput also for one nested deeper than 500, or with an integer of over 4,300 digits.
    """
    try:
        value = msgspec.json.decode(content.removeprefix(codecs.BOM_UTF8))
        _check_depth(value)
        return value
    except (ValueError, RecursionError) as error:
        reason = f" ({error})" if isinstance(error, (_Refused, msgspec.ValidationError)) else ""
        raise InvalidInput(f"{what} is not a valid JSON document{reason}.") from None


def encode_json(value: Any) -> bytes:
    """Returns a JSON text of the value: UTF-8, compact, keys in their order.

    Raises InvalidInput for a lone surrogate in a string, which UTF-8 cannot carry.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise InvalidInput("The document cannot be written as JSON in UTF-8.") from None


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Returns the target with the patch merged in; neither argument changes (RFC 7396, 2)."""
    if not isinstance(patch, dict):
        return patch
    result: dict[str, Any] = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


def resolve_pointer(document: Any, pointer: str) -> Any:
    """Returns the value that a JSON pointer (RFC 6901) names; NotFound where the document has none there."""
    if pointer and not pointer.startswith("/"):
        raise InvalidInput("A JSON pointer is empty or begins with '/'.", field="json_pointer")
    value = document
    for token in pointer.split("/")[1:]:
        if re.search(r"~(?![01])", token):
            raise InvalidInput(
                "In a JSON pointer '~' is written '~0' and '/' is written '~1'.", field="json_pointer"
            )
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and _is_index(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            raise NotFound("The document has nothing at this JSON pointer.", field="json_pointer")
    return value


def _is_index(key: str) -> bool:
    return re.fullmatch(r"0|[1-9][0-9]{0,9}", key) is not None


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(MAXIMUM_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise _Refused("it is nested too deeply")
