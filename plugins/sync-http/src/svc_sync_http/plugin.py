"""The hooks of the plugin: its transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_sync.api import Transport

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_sync_transports"]


@hookimpl
def svc_register_sync_transports(sync_transports: NamedRegistry[Transport]) -> None:
    """Adds the transport of ``http`` and ``https``."""
    from svc_sync_http.transport import HttpTransport

    sync_transports.add(HttpTransport())
