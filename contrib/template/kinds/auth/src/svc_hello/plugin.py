"""The hook of the plugin."""

from __future__ import annotations

from svc.plugin import AuthMode, NamedRegistry, hookimpl

__all__ = ["svc_register_auth_modes"]


@hookimpl
def svc_register_auth_modes(auth_modes: NamedRegistry[AuthMode]) -> None:
    """Adds ``--auth hello``."""
    from svc_hello.mode import WordAuthMode

    auth_modes.add(WordAuthMode())
