"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="portal",
    version="0.1.0",
    summary="Pages for people, which plugins add to",
    api=(1, 1),
    adds={
        "portal:portal_pages": (
            "svc_portal.state:StatePage",
            "svc_portal.plugin_pages:PluginsPage",
            "svc_portal.plugin_pages:PluginPage",
        ),
        "portal:state_cards": (
            "svc_portal.state:FindingsCard",
            "svc_portal.state:ServerCard",
        ),
    },
    operations=("svc_portal.operations",),
    families="svc_portal.api",
    front_page="/portal/",
)
