"""The hook of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_query.api import Parser

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_parsers"]


@hookimpl
def svc_register_parsers(parsers: NamedRegistry[Parser]) -> None:
    """Adds the parser ``properties``."""
    from svc_hello.properties import PropertiesParser

    parsers.add(PropertiesParser())
