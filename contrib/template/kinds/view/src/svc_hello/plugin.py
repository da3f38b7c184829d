"""The hook of the plugin."""

from __future__ import annotations

from svc.plugin import NamedRegistry, View, hookimpl

__all__ = ["svc_register_views"]


@hookimpl
def svc_register_views(views: NamedRegistry[View]) -> None:
    """Adds the view."""
    from svc_hello.writes import WritesView

    views.add(WritesView())
