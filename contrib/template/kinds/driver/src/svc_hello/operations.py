"""What the plugin can do, declared once: route, OpenAPI, and calls of programs follow from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from svc.errors import InvalidInput
from svc.plugin import operation, requires_identity

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["Greeting", "greet_in_style"]


class Greeting(Struct, frozen=True):
    """A greeting."""

    greeting: str


@operation("GET", "/greet/{style}/{name}", requires_identity)
def greet_in_style(call: Call, style: str, name: str) -> Greeting:
    """Greets in one of the styles that are in use for the database."""
    from svc_hello.api import HELLO_STYLES

    styles = call.extensions(HELLO_STYLES)
    if style not in styles:
        raise InvalidInput(f"There is no style {style!r}.", field="style", styles=sorted(styles))
    extension = styles[style]
    return Greeting(extension.value.greet(name, extension.context.configuration))
