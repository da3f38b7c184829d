"""Which operation a method and a URL name, where no router is at hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from svc.errors import InvalidPath, MethodNotAllowed, NotFound
from svc.operations.declaration import TEMPLATE_FIELD, DeclaredOperation
from svc.paths import parse_path

__all__ = ["FoundOperation", "match_operation"]


class FoundOperation(Struct, frozen=True):
    """An operation, and the fields of its URL as its function takes them."""

    operation: DeclaredOperation[..., Any]
    fields: Mapping[str, Any]


def match_operation(
    operations: Iterable[DeclaredOperation[..., Any]], method: str, path: str
) -> FoundOperation:
    """Returns the operation of a URL's encoded path; of several the one whose template has the fewest fields.

    Raises:
        NotFound: no operation has such a URL.
        MethodNotAllowed: those that have it do not take the method.
    """
    found = [
        (len(TEMPLATE_FIELD.findall(template)), -len(template), operation, template, match)
        for operation in operations
        for template in operation.templates
        if (match := _expression(template).fullmatch(path)) is not None
    ]
    taking = [each for each in found if each[2].method == method]
    if not taking:
        if found:
            raise MethodNotAllowed(f"The resource does not take {method}.")
        raise NotFound("There is no such resource.")
    _, _, operation, template, match = min(taking, key=lambda each: each[:2])
    fields: dict[str, Any] = {}
    for name, converter in TEMPLATE_FIELD.findall(template):
        try:
            text = unquote(match[name] or "", errors="strict")
        except UnicodeDecodeError:
            raise InvalidPath("The URL's path is not valid UTF-8.") from None
        fields[name] = parse_path(text) if converter == "path" else text
    return FoundOperation(operation, fields)


@lru_cache(maxsize=1024)
def _expression(template: str) -> re.Pattern[str]:
    """Matches the paths of a template; one that ends in a path matches its stem too, as the empty path."""
    parts, place = [], 0
    for field in TEMPLATE_FIELD.finditer(template):
        before = template[place : field.start()]
        if field[2] == "path" and before.endswith("/"):
            parts.append(re.escape(before[:-1]) + f"(?:/(?P<{field[1]}>.*))?")
        else:
            pattern = ".+" if field[2] == "text" else "[^/]+"
            parts.append(re.escape(before) + f"(?P<{field[1]}>{pattern})")
        place = field.end()
    return re.compile("".join(parts) + re.escape(template[place:]), re.DOTALL)
