"""The hooks of the plugin: its views, its commands and its part of the portal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_portal.api import EntryAction, PortalPage, Preview

    from svc.plugin import NamedRegistry, View

__all__ = [
    "svc_register_entry_actions",
    "svc_register_portal_pages",
    "svc_register_previews",
    "svc_register_views",
]


@hookimpl
def svc_register_views(views: NamedRegistry[View]) -> None:
    """Adds the views of deleted files, of the holders of chunks, and of chunks as clients cut them."""
    from svc_files.chunk_holders import ChunkHoldersView
    from svc_files.client_chunks import ClientChunksView
    from svc_files.deleted_view import DeletedFilesView

    views.add(DeletedFilesView())
    views.add(ChunkHoldersView())
    views.add(ClientChunksView())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds directories and files, as they are and as they were, and what was deleted."""
    from svc_files.portal.pages import FilesPage
    from svc_files.portal.past import PastPage
    from svc_files.portal.removed import DeletedPage

    for page in (FilesPage, PastPage, DeletedPage):
        portal_pages.add(page())


@hookimpl
def svc_register_entry_actions(entry_actions: NamedRegistry[EntryAction]) -> None:
    """Adds renaming, moving and copying, the past and what was deleted."""
    from svc_files.portal import actions

    for name in actions.__all__:
        entry_actions.add(getattr(actions, name)())


@hookimpl
def svc_register_previews(previews: NamedRegistry[Preview]) -> None:
    """Adds the previews of text, tables and media."""
    from svc_files.portal.drawn import CodePreview, MarkdownPreview
    from svc_files.portal.previews import PREVIEWS

    kinds: tuple[type[Preview], ...] = (*PREVIEWS, MarkdownPreview, CodePreview)
    for kind in kinds:
        previews.add(kind())
