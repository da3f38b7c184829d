"""The hooks of the plugin: its commands and its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_portal.api import PortalPage

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_portal_pages"]


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the pages of backups."""
    from svc_backup.portal.backups import BackupPage, BackupsPage

    portal_pages.add(BackupsPage())
    portal_pages.add(BackupPage())
