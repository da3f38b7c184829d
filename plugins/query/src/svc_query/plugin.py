"""The hooks of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc.plugin import BatchView, ContentCheck, NamedRegistry

__all__ = ["svc_register_content_checks", "svc_register_views"]


@hookimpl
def svc_register_views(views: NamedRegistry[BatchView]) -> None:
    """Adds the view that keeps the indexes."""
    from svc_query.indexing.view import IndexView

    views.add(IndexView())


@hookimpl
def svc_register_content_checks(content_checks: NamedRegistry[ContentCheck]) -> None:
    """Adds the check of ``indexes.json``."""
    from svc_query.indexing.checking import IndexesCheck

    content_checks.add(IndexesCheck())
