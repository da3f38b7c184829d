"""What the plugin says about itself. svc reads it at every start, so it imports no more of the plugin."""

from __future__ import annotations

from svc.plugin import PluginDescriptor

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="portal.jsonl",
    version="0.1.0",
    summary="JSON Lines as tables in the portal",
    api=(1, 1),
    adds={
        "portal:previews": ("svc_portal_jsonl.showing:LinesPreview",),
        "portal:portal_pages": ("svc_portal_jsonl.showing:LinesPage",),
    },
    needs=("files",),
)
