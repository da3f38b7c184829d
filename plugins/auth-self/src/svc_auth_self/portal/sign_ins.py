"""The page of sign-ins, for root: who, when, from where, and who was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from svc_portal.api import Answer, RootPage, Shown

from svc_auth_self.mode import TokenAuthMode
from svc_auth_self.models import SignInQuery
from svc_auth_self.operations import list_sign_ins

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["SignInsPage"]

_ROWS = 200


class SignInsPage(RootPage):
    """The last sign-ins."""

    name: ClassVar[str] = "sign-ins"
    path: ClassVar[str] = "sign-ins"
    title: ClassVar[str] = "Sign-ins"
    follows: ClassVar[str | None] = "keys"

    def is_for(self, request: PortalRequest) -> bool:
        """Root, where the auth mode has our keys."""
        return super().is_for(request) and isinstance(request.context.auth_mode, TokenAuthMode)

    def show(self, request: PortalRequest) -> Answer:
        """All, or those that were refused."""
        is_refused = request.query.get("only") == "refused"
        found = request.call(list_sign_ins, SignInQuery(limit=_ROWS, refused=True if is_refused else None))
        rows = [
            (one, request.url_if("users.one", user=one.user_id) if one.username else None)
            for one in found.sign_ins
        ]
        values = {
            "rows": rows,
            "is_refused": is_refused,
            "all_url": request.here,
            "refused_url": request.url("sign-ins", {"only": "refused"}),
            "keys_url": request.url("keys"),
        }
        return Shown("sign_ins.html", values)
