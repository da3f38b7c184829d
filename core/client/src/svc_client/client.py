"""The client: one server, and what it can be asked."""

from __future__ import annotations

from typing import Any, Self

import msgspec

from svc.errors import ServiceUnavailable
from svc.operations.system import HEALTH_TEMPLATE
from svc.operations.system_models import Health
from svc_client.address import Credentials, ServerAddress
from svc_client.credentials import CredentialStore, SignIn, StoredTokens
from svc_client.failures import foreign_answer
from svc_client.files import Files
from svc_client.operations import Operations
from svc_client.transport import Token, Transport

__all__ = ["Client", "connect"]


class Client(Operations):
    """A server of svc. Its methods block, and any number of threads may call them; a context closes it.

    Args:
        url: ``http[s]://host[:port][/prefix]``.
        token: bearer token. It is sent to this server only, and shown nowhere.
        api_key: API key, exchanged for tokens when one is needed. Without either, the environment
            variables ``SVC_TOKEN`` and ``SVC_API_KEY`` are read.
        store: sign-ins that were kept, used when there is neither of these nor such a variable.
        ca_file: PEM file of the authorities to trust instead of the system's.
        timeout: seconds that a connect, a send or a receive may take.
        attempts: how often a request that may be repeated is sent at most.

    Attributes:
        address: where the server is.
        sends_secrets_in_clear: whether credentials leave this machine unencrypted.
        files: files, directories, links.

    Raises:
        UsageError: the URL, a credential or the file of authorities cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        api_key: str | None = None,
        store: CredentialStore | None = None,
        ca_file: str | None = None,
        timeout: float = 120.0,
        attempts: int = 6,
    ) -> None:
        self.address = ServerAddress.parse(url, ca_file)
        credentials = Credentials(token, api_key) or Credentials.from_environment()
        stored = None if credentials or store is None else StoredTokens(store, self.address)
        super().__init__(
            Transport(self.address, credentials, stored=stored, timeout=timeout, attempts=attempts)
        )
        self.sends_secrets_in_clear = bool(credentials or stored) and not (
            self.address.secure or self.address.is_loopback
        )
        self.files = Files(self.transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.address.url}>"

    def health(self) -> Health:
        """Returns how the server is, also while it does not serve yet."""
        try:
            response = self.transport.request("GET", HEALTH_TEMPLATE, repeatable=False)
        except ServiceUnavailable as error:
            if error.details.get("service") != "svc":
                raise
            try:
                return msgspec.convert(error.details, Health)
            except msgspec.ValidationError:
                raise foreign_answer(self.address.url) from None
        return response.json(Health)

    def sign_in(self, api_key: str) -> SignIn:
        """Exchanges an API key for an access token and a refresh token.

        Raises:
            AuthRequired: the server does not take the key.
            RateLimited: too many logins have failed.
        """
        # The token that this client may have is not shown: a server refuses one that has ended.
        return self.transport.json(
            "POST", "/auth/token", Token, value={"api_key": api_key}, anonymous=True
        ).signed_in()

    def sign_out(self, refresh_token: str) -> None:
        """Ends a sign-in by its refresh token."""
        value = {"refresh_token": refresh_token}
        self.transport.json("POST", "/auth/logout", dict[str, Any], value=value, anonymous=True)

    def close(self) -> None:
        """Closes all connections."""
        self.transport.close()


def connect(url: str, *, token: str | None = None, ca_file: str | None = None) -> Client:
    """Makes the client of a command: it uses what ``svc login`` has kept."""
    return Client(url, token=token, ca_file=ca_file, store=CredentialStore())
