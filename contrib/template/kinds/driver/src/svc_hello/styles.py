"""The style that the driver brings itself."""

from __future__ import annotations

from svc_hello.api import HelloStyle

__all__ = ["Plain"]


class Plain(HelloStyle):
    """Says hello."""

    name = "plain"

    def greet(self, name: str, configuration: object) -> str:
        """Returns the greeting."""
        return f"Hello, {name}!"
