"""The auth mode ``hello``: who sends the word of the settings is root."""

from __future__ import annotations

import hmac

from svc.errors import AuthRequired
from svc.plugin import ROOT_USER_ID, AuthContext, AuthMode, Credentials, Identity
from svc_hello.descriptor import HelloSettings

__all__ = ["WordAuthMode"]


class WordAuthMode(AuthMode):
    """Gives three answers: an identity, None where nothing was sent, and an error where it is wrong."""

    name = "hello"
    allows_argument = False

    def __init__(self, word: str = "") -> None:
        self._word = word.encode()

    def bind(self, context: AuthContext) -> AuthMode:
        """Returns the mode with the word of a database."""
        return WordAuthMode((context.configuration or HelloSettings()).word.reveal())

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Returns who asks; called for every request, so it must be quick."""
        if credentials.scheme != "bearer" or credentials.value is None:
            return None
        sent = credentials.value.encode("utf-8", "surrogateescape")
        if not self._word or not hmac.compare_digest(sent, self._word):
            raise AuthRequired("The credentials are not valid.")
        return Identity(user_id=ROOT_USER_ID, name="root", is_root=True, auth_mode=self.name)
