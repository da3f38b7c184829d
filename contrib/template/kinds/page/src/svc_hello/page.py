"""The page ``/portal/hello``."""

from __future__ import annotations

from collections.abc import Mapping

from svc_portal.api import Act, Answer, Message, PortalPage, PortalRequest, Shown

__all__ = ["HelloPage"]


class HelloPage(PortalPage):
    """Greets whom its form names. What a page does with the database, it does with ``request.call``."""

    name = "contrib.hello"
    path = "hello"
    title = "Hello"
    place = 90

    def show(self, request: PortalRequest) -> Answer:
        """Answers a GET; changes nothing."""
        return Shown("hello.html", {"here": request.here})

    def acts(self) -> Mapping[str, Act]:
        """What the form does."""
        return {"greet": self._greet}

    def _greet(self, request: PortalRequest) -> Message:
        return Message(f"Hello, {request.form.require('whom')}!")
