"""Where a request comes from: the peer of the connection, or whom a trusted proxy names.

A proxy adds the address of its peer at the right end of ``X-Forwarded-For``. So the right-most address that
is no trusted proxy's is the last one that somebody trusted has seen; the rest is hearsay. ``Forwarded`` (RFC
7239) is not read: a proxy that writes one of the two hands the other on as the client wrote it.
"""

from __future__ import annotations

import functools
import ipaddress
import logging
from collections.abc import Iterable
from typing import Any, TypeAlias

__all__ = ["ClientAddresses", "Network", "parse_networks"]

logger = logging.getLogger("svc.server")

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_MOST_HOPS = 32
"""Further to the left of the header nobody looks."""

_KNOWN_PEERS = 1024
_SHORT_FIELD = 256
"""Longer fields are read each time, so that the cache stays small."""


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Returns the networks that texts name: addresses, or networks in CIDR form."""
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text.strip()))
        except ValueError:
            raise ValueError(f"{text!r} is no IP address and no network such as 10.0.0.0/8") from None
    return tuple(networks)


class ClientAddresses:
    """Finds the address of a request's client, by the networks of proxies whose ``X-Forwarded-For`` counts.

    Where there are any, a peer without an address, as over a Unix socket, is trusted too.
    """

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._trusted = parse_networks(trusted)
        self._has_warned = False
        self._remembered = functools.lru_cache(maxsize=_KNOWN_PEERS)(self._behind_proxies)

    def of(self, environ: dict[str, Any]) -> str | None:
        """Returns the client's address; None where nobody knows it."""
        peer: str | None = environ.get("REMOTE_ADDR") or None
        forwarded: str | None = environ.get("HTTP_X_FORWARDED_FOR")
        if not forwarded:
            return peer
        if not self._has_warned:
            self._warn_of_proxy(peer)
        if not self._trusted:
            return peer
        find = self._remembered if len(forwarded) <= _SHORT_FIELD else self._behind_proxies
        return find(peer, forwarded)

    def _behind_proxies(self, peer: str | None, forwarded: str) -> str | None:
        if peer is not None and not self._is_trusted(_address_of(peer)):
            return peer
        client = peer
        for text in reversed(forwarded.rsplit(",", _MOST_HOPS)[-_MOST_HOPS:]):
            address = _address_of(text)
            if address is None:
                break  # The proxy that wrote this is the last one that is known.
            client = str(address)
            if not self._is_trusted(address):
                break
        return client

    def _warn_of_proxy(self, peer: str | None) -> None:
        """Says once that requests seem to come through a proxy that is not trusted.

        Anybody may send the field: only a peer in the same network is taken for a proxy.
        """
        address = None if peer is None else _address_of(peer)
        if address is None and self._trusted:
            return
        if address is not None and (self._is_trusted(address) or not address.is_private):
            return
        self._has_warned = True
        logger.warning(
            "Requests come through a proxy (%s) that --trusted-proxies does not name: all clients behind it "
            "count as one, also where wrong keys are counted by address.",
            peer or "a Unix socket",
        )

    def _is_trusted(self, address: _Address | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)


def _address_of(text: str) -> _Address | None:
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
