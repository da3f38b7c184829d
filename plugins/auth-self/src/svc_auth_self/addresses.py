"""Who is counted for a rate limit: the address of a client, as far as one client has one."""

from __future__ import annotations

import ipaddress

from svc.plugin import Call

__all__ = ["client_address"]

_IPV6_PREFIX = 64


def client_address(call: Call) -> str:
    """Returns what a rate limit counts a client by: an IPv4 address, or an IPv6 network of 64 bits.

    Behind trusted proxies it is the address that they name.
    """
    try:
        address = ipaddress.ip_address((call.client_address or "").partition("%")[0])
    except ValueError:
        return "local"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
    return str(address)
