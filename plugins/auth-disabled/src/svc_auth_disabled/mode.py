"""The auth mode ``disabled``."""

from __future__ import annotations

from typing import ClassVar

from svc.plugin import ROOT_USER_ID, AuthMode, Credentials, Identity

__all__ = ["DisabledAuthMode"]

_ROOT = Identity(user_id=ROOT_USER_ID, name="root", is_root=True, auth_mode="disabled")


class DisabledAuthMode(AuthMode):
    """Takes every request for root's, whatever it carries.

    Whoever reaches the port may do everything; therefore the server listens on loopback unless the person who
    starts it names another host.
    """

    name: ClassVar[str] = "disabled"
    aliases: ClassVar[tuple[str, ...]] = ("false",)
    loopback_only: ClassVar[bool] = True
    has_keys: ClassVar[bool] = False
    allows_argument: ClassVar[bool] = False
    asked_once_a_commit = True

    def authenticate(self, credentials: Credentials) -> Identity:
        """The root identity. Does not block."""
        return _ROOT
