"""The hooks of the plugin: its link in the portal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_portal.api import PortalLink

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_portal_links"]


@hookimpl
def svc_register_portal_links(portal_links: NamedRegistry[PortalLink]) -> None:
    """Adds the link to the documentation."""
    from svc_docs.portal import DocumentationLink

    portal_links.add(DocumentationLink())
