"""What pages and the other things of the portal's families must pass; imported by tests only."""

from __future__ import annotations

from svc_portal.testing.contract import (
    OWN_FORM,
    EntryActionContract,
    PageReader,
    PortalLinkContract,
    PortalPageContract,
    PreviewContract,
    SignInContract,
    StateCardContract,
    follow,
    send_form,
)

__all__ = [
    "OWN_FORM",
    "EntryActionContract",
    "PageReader",
    "PortalLinkContract",
    "PortalPageContract",
    "PreviewContract",
    "SignInContract",
    "StateCardContract",
    "follow",
    "send_form",
]
