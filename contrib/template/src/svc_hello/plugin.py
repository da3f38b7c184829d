"""The hooks that the plugin implements: each adds something to a registry, once, at the start."""

from __future__ import annotations

from svc.plugin import NamedRegistry, View, hookimpl

__all__ = ["svc_register_views"]


@hookimpl
def svc_register_views(views: NamedRegistry[View]) -> None:
    """Adds the view that counts the commits of each author."""
    from svc_hello.activity import ActivityView

    views.add(ActivityView())
