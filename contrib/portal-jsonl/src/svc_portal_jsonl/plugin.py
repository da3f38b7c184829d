"""The hooks: one for each family of the portal that the plugin adds to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_portal.api import PortalPage, Preview

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_portal_pages", "svc_register_previews"]


@hookimpl
def svc_register_previews(previews: NamedRegistry[Preview]) -> None:
    """Adds the preview; where the portal is not in use, nobody calls this."""
    from svc_portal_jsonl.showing import LinesPreview

    previews.add(LinesPreview())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the page with more rows."""
    from svc_portal_jsonl.showing import LinesPage

    portal_pages.add(LinesPage())
