"""The contract of greeting styles, as tests: authors of extensions subclass it."""

from __future__ import annotations

from svc_hello.api import HELLO_STYLES, HelloStyle
from svc_testing import ExtensionContract

__all__ = ["HelloStyleContract"]


class HelloStyleContract(ExtensionContract):
    """Tests of a style. A subclass sets ``plugin_id`` and gives the fixture ``extension``."""

    family = HELLO_STYLES

    def test_a_greeting_holds_the_name(self, extension: HelloStyle) -> None:
        """Whoever is greeted is named, in whatever case."""
        assert "ann" in extension.greet("Ann", None).lower()
