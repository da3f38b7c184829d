"""What the operations on links that sign in take and answer."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from svc.plugin import Confidential

__all__ = ["Asked", "CodeQuery", "LinkRequest", "Verified"]


class LinkRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a link shall be sent."""

    email: Annotated[str, Meta(min_length=1, max_length=320)]


class Asked(Struct, frozen=True):
    """What everybody is told who asks for a link."""

    message: str


class CodeQuery(Confidential, frozen=True):
    """The code of a link. ``confirm`` leaves out the page that a browser is shown first."""

    shown = ("confirm",)

    code: str
    confirm: bool = False


class Verified(Confidential, frozen=True):
    """The answer to a code. Its representation shows no token."""

    shown = ("expires_in",)

    token: str
    expires_in: Annotated[int, Meta(description="Seconds for which the token is good.")]
