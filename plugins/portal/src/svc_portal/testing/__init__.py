"""What pages and the other things of the portal's families must pass; imported by tests only."""

from __future__ import annotations

from svc_portal.testing.contract import (
    EntryActionContract,
    PortalLinkContract,
    PortalPageContract,
    PreviewContract,
    SignInContract,
    StateCardContract,
)

__all__ = [
    "EntryActionContract",
    "PortalLinkContract",
    "PortalPageContract",
    "PreviewContract",
    "SignInContract",
    "StateCardContract",
]
