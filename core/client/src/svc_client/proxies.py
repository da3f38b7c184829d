"""The proxy between a client and its server, as the environment names it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from svc.errors import UsageError
from svc_client.address import ServerAddress

__all__ = ["Proxy", "proxy_of"]


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy: its URL without credentials, and the header fields that hold those."""

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)


def proxy_of(address: ServerAddress) -> Proxy | None:
    """Returns the proxy that the environment (``https_proxy``, ``no_proxy`` and so on) names for a server.

    A server on the loopback interface is never reached through a proxy.

    Raises:
        UsageError: it is no http:// or https:// URL.
    """
    if address.is_loopback or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies_environment, proxy_bypass

    found = getproxies_environment()
    url = found.get("https" if address.secure else "http") or found.get("all")
    if not url or proxy_bypass(f"{address.host}:{address.port}"):
        return None
    from urllib.parse import unquote

    from urllib3.exceptions import LocationParseError
    from urllib3.util import Url, make_headers, parse_url

    try:
        parsed = parse_url(url if "://" in url else f"http://{url}")
    except LocationParseError:
        parsed = Url()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        # It is not repeated: it may hold a password.
        raise UsageError(
            "The environment names a proxy (http_proxy, https_proxy, all_proxy) "
            "that is no http:// or https:// URL."
        )
    headers = {} if parsed.auth is None else make_headers(proxy_basic_auth=unquote(parsed.auth))
    return Proxy(parsed._replace(auth=None).url, headers)
