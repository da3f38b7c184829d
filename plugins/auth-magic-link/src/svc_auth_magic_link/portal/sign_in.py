"""The two forms of it at the portal: one asks for a link, and the link leads to the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from svc_portal.api import Field, Message, Session, SignIn

from svc.errors import InvalidInput
from svc_auth_magic_link.asking import ask
from svc_auth_magic_link.using import sign_in_by
from svc_auth_self.api import TokenAuthMode, refresh_seconds

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["AskForLink", "UseLink"]

_PAGE = "/portal/sign-in"
_MOST_ADDRESS = 320
_MOST_CODE = 200


class _ByLink(SignIn):
    def renew(self, request: PortalRequest, renewal: str) -> Session | None:
        """The tokens are those of keys, and so are what renews and ends them."""
        return None

    def end(self, request: PortalRequest, renewal: str) -> bool:
        """See ``renew``."""
        return False


class AskForLink(_ByLink):
    """Asks for a link."""

    name: ClassVar[str] = "magic-link"
    title: ClassVar[str] = "Send me a link"
    fields: ClassVar[tuple[Field, ...]] = (Field("email", "Mail address", "email", "email"),)
    hint: ClassVar[str] = "A link that signs you in is mailed to you."
    place: ClassVar[int] = 60

    def is_offered(self, request: PortalRequest) -> bool:
        """Where links can be sent, and the auth mode has tokens."""
        return (
            isinstance(request.context.auth_mode, TokenAuthMode) and request.plugin.configuration.gives_links
        )

    def sign_in(self, request: PortalRequest, values: Mapping[str, str]) -> Session | Message:
        """Says the same whoever asks."""
        email = values["email"].strip()
        if not 0 < len(email) <= _MOST_ADDRESS:
            raise InvalidInput("This is no mail address.", field="email")
        return Message(ask(request.context, request.plugin.configuration, email, _PAGE))


class UseLink(_ByLink):
    """Uses the code that the link has brought; a mail scanner, which opens the page too, leaves it alone."""

    name: ClassVar[str] = "magic-link-code"
    title: ClassVar[str] = "Sign in by the link"
    fields: ClassVar[tuple[Field, ...]] = (Field("code", "Code", "hidden"),)
    hint: ClassVar[str] = "The link can be used once."
    place: ClassVar[int] = 0

    def is_offered(self, request: PortalRequest) -> bool:
        """Where the address of the page, or its form, has a code."""
        has_code = "code" in request.query or "code" in request.form
        return has_code and isinstance(request.context.auth_mode, TokenAuthMode)

    def sign_in(self, request: PortalRequest, values: Mapping[str, str]) -> Session | Message:
        """A session like that of a key, which lasts until its user signs out or does not come for long."""
        signed_in = sign_in_by(request.context, values["code"][:_MOST_CODE], refresh=True)
        return Session(
            token=signed_in.token,
            lifetime_s=signed_in.expires_in,
            renewal=signed_in.refresh_token,
            renewal_s=refresh_seconds(request.context.database),
        )
