"""Where a server is, and who calls it."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from svc.errors import UsageError

__all__ = ["Credentials", "ServerAddress"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client shows a server. Never part of a message, a log line or a ``repr``.

    Attributes:
        token: a bearer token; used as it is.
        api_key: an API key; exchanged for a token when the first request needs one. ``token`` wins over it.
    """

    token: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, value in (("token", self.token), ("API key", self.api_key)):
            if value is not None and not (value.isascii() and value.isprintable() and " " not in value):
                raise UsageError(f"The {name} holds characters that it cannot have.")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Credentials:
        """Reads ``SVC_TOKEN`` and ``SVC_API_KEY``; empty ones count as absent.

        Args:
            environment: what to read; the environment of the process when None.

        Raises:
            UsageError: one of them cannot stand in a header.
        """
        found = os.environ if environment is None else environment
        return cls(found.get("SVC_TOKEN") or None, found.get("SVC_API_KEY") or None)

    def __bool__(self) -> bool:
        return bool(self.token or self.api_key)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is.

    Attributes:
        secure: TLS or not.
        host: name or address, without brackets.
        port: TCP port.
        prefix: path in front of every route, without a slash at its end.
        ca_file: PEM file of the authorities to trust instead of the system's.
    """

    secure: bool
    host: str
    port: int
    prefix: str = ""
    ca_file: str | None = None

    @classmethod
    def parse(cls, url: str, ca_file: str | None = None) -> ServerAddress:
        """Reads ``http[s]://host[:port][/prefix]``.

        Raises:
            UsageError: it is not such a URL.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise UsageError(f"'{url}' is not a URL: {error}.") from None
        if not parts.hostname or parts.scheme not in ("http", "https"):
            raise UsageError("A server's URL has the form http://host:port or https://host:port.")
        if parts.username is not None or parts.password is not None:
            raise UsageError("A server's URL may not hold a user or a password; use --token or SVC_TOKEN.")
        if parts.query or parts.fragment:
            raise UsageError("A server's URL may not hold a query or a fragment.")
        secure = parts.scheme == "https"
        default = 443 if secure else 80
        found = cls(secure, parts.hostname, port or default, parts.path.rstrip("/"), ca_file)
        try:
            # As it is looked up.
            (parse_url(found.origin).host or "").encode("idna")
        except (LocationParseError, UnicodeError):
            raise UsageError(f"'{url}' is not a URL: it names no host that there can be.") from None
        return found

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL as a message may show it."""
        return self.origin + self.prefix

    @property
    def is_loopback(self) -> bool:
        """Whether nothing that is sent leaves this machine."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def tls_context(self) -> ssl.SSLContext | None:
        """Makes the TLS settings: certificates and host names are always verified.

        Raises:
            UsageError: the file of authorities cannot be read.
        """
        if not self.secure:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"The authorities in {self.ca_file} cannot be used: {error}.") from None
