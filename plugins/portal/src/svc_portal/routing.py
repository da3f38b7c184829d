"""Which page stands at an address below ``/portal/``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from svc.plugin import Extension, parse_path
from svc_portal.api import PortalPage

__all__ = ["find_page"]

_FIELD = re.compile(r"\{([a-z_]+)(:path)?\}")


def find_page(
    pages: Mapping[str, Extension[PortalPage]], path: str
) -> tuple[Extension[PortalPage], dict[str, Any]] | None:
    """Returns the page at a path, with the fields of the path; the most literal template decides.

    Raises:
        InvalidPath: a field that takes the rest is no path.
    """
    for extension in sorted(pages.values(), key=lambda one: _form_of(one.value.path)[0]):
        _, expression, paths = _form_of(extension.value.path)
        match = expression.fullmatch(path)
        if match is not None:
            fields: dict[str, Any] = match.groupdict()
            return extension, {
                name: parse_path(text or "") if name in paths else text for name, text in fields.items()
            }
    return None


@lru_cache(maxsize=256)
def _form_of(template: str) -> tuple[list[int], re.Pattern[str], frozenset[str]]:
    """How literal a template is, the expression for it, and which fields take the rest."""
    weights: list[int] = []
    expression, paths = "", set()
    for part in template.split("/"):
        field = _FIELD.fullmatch(part)
        if field is None:
            weights.append(0)
            expression += f"/{re.escape(part)}"
        elif field[2]:
            weights.append(2)
            paths.add(field[1])
            expression += f"(?:/(?P<{field[1]}>.*))?"
        else:
            weights.append(1)
            expression += f"/(?P<{field[1]}>[^/]+)"
    compiled = re.compile(expression.removeprefix("/") + ("" if paths else "/?"), re.DOTALL)
    return weights, compiled, frozenset(paths)
