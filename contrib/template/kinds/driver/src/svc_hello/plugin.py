"""The hooks of the plugin: a driver adds extensions to its own family as others do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import NamedRegistry
    from svc_hello.api import HelloStyle

__all__ = ["svc_register_hello_styles"]


@hookimpl
def svc_register_hello_styles(hello_styles: NamedRegistry[HelloStyle]) -> None:
    """Adds the style ``plain``."""
    from svc_hello.styles import Plain

    hello_styles.add(Plain())
