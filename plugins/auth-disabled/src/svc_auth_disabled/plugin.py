"""The hook implementations of the plugin ``auth.disabled``."""

from __future__ import annotations

from svc.plugin import AuthMode, NamedRegistry, hookimpl
from svc_auth_disabled.mode import DisabledAuthMode

__all__ = ["svc_register_auth_modes"]


@hookimpl
def svc_register_auth_modes(auth_modes: NamedRegistry[AuthMode]) -> None:
    """Adds ``--auth disabled``."""
    auth_modes.add(DisabledAuthMode())
