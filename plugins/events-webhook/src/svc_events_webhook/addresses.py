"""Which addresses a webhook may go to: a server that sends requests where others tell it to is a way in.

The name of a URL is looked up once, all of its addresses are judged, and the connection goes to one that was:
a name that says something else the next moment gains nothing. See OWASP, Server-Side Request Forgery
Prevention, and RFC 6890 for the addresses that are not the internet's.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from svc.errors import InvalidInput
from svc_events_webhook.configuration import WebhookConfiguration

__all__ = ["Target", "is_public", "parse_target", "resolve"]

_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SPECIAL = (
    *(ipaddress.ip_network(text) for text in ("192.88.99.0/24", "fec0::/10", "3fff::/20", "5f00::/16")),
)
"""What the library takes for the internet, and is not: RFC 7526, 3879, 9637, 9602."""
_LONGEST_URL = 2_000

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Target(NamedTuple):
    """A URL as it is used.

    Attributes:
        scheme: ``http`` or ``https``.
        host: the name or address, without brackets.
        port: the port.
        path: what is asked for: path and query.
        authority: host and port as the header field Host has them.
    """

    scheme: str
    host: str
    port: int
    path: str
    authority: str


def parse_target(url: str, settings: WebhookConfiguration) -> Target:
    """Returns where a URL leads; what its name stands for is judged when it is used.

    Raises:
        InvalidInput: it is no such URL, or leads where webhooks may not go.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise InvalidInput("The URL is not valid.", field="url") from None
    if parts.scheme not in _PORTS or not parts.hostname or len(url) > _LONGEST_URL:
        raise InvalidInput("A webhook has a URL that begins with http:// or https://.", field="url")
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise InvalidInput("A URL has printable ASCII characters, and no spaces.", field="url")
    if parts.username is not None or parts.fragment:
        raise InvalidInput("The URL of a webhook has no user and no fragment.", field="url")
    if port not in _PORTS.values() and not settings.allow_any_port:
        raise InvalidInput("Webhooks go to the ports 80 and 443.", field="url")
    host = parts.hostname
    try:
        literal: Address | None = ipaddress.ip_address(host)
    except ValueError:
        literal = None
    if literal is not None and not settings.allow_private and not is_public(literal):
        raise InvalidInput("Webhooks do not go to private addresses.", field="url")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port, path, parts.netloc)


def resolve(target: Target, settings: WebhookConfiguration) -> str:
    """Returns an address of a target that webhooks may go to; blocks as a lookup of a name does.

    Raises:
        OSError: there is no such name, or one of its addresses is none that webhooks may go to.
    """
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = [str(item[4][0]) for item in found]
    if not settings.allow_private:
        for address in addresses:
            if "%" in address or not is_public(ipaddress.ip_address(address)):
                raise PermissionError("The name stands for a private address.")
    return addresses[0]


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet; one that stands for an IPv4 address is what that is."""
    held = _held(address) if isinstance(address, ipaddress.IPv6Address) else None
    if held is not None:
        return is_public(held)
    special = any(address in network for network in _SPECIAL)
    return address.is_global and not (address.is_multicast or address.is_reserved or special)


def _held(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address at which packets to an IPv6 one end: mapped, 6to4 (RFC 3056), NAT64 (RFC 6052)."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
