"""The hooks of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import NamedRegistry, hookimpl

if TYPE_CHECKING:
    from svc_query.api import Parser

__all__ = ["svc_register_parsers"]


@hookimpl
def svc_register_parsers(parsers: NamedRegistry[Parser]) -> None:
    """Adds the parsers; the libraries that they use are imported where they parse."""
    from svc_parsers.parsers import PARSERS

    for parser in PARSERS:
        parsers.add(parser())
