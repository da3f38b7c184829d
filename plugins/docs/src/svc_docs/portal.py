"""The link to the documentation on every page of the portal."""

from __future__ import annotations

from typing import ClassVar

from svc_portal.api import PortalLink

__all__ = ["DocumentationLink"]


class DocumentationLink(PortalLink):
    """The link."""

    name: ClassVar[str] = "docs"
    title: ClassVar[str] = "Help"
    url: ClassVar[str] = "/docs/"
    relation: ClassVar[str | None] = "help"
