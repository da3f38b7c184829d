"""The client's half: which addresses it takes. What connects is loaded when it is used."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from svc_sync.api import Connection, Transport

from svc.errors import InvalidInput
from svc.plugin import PluginContext
from svc_sync_http.configuration import SyncHttpConfiguration

__all__ = ["HttpTransport"]


class HttpTransport(Transport):
    """Asks nodes by HTTP."""

    name = "http"
    schemes = ("http", "https")

    def check_address(self, address: str, context: PluginContext) -> None:
        """Refuses what is no plain URL, and ``http://`` to other machines where TLS is asked for."""
        url = _parse(address)
        if url.scheme == "http" and _settings(context).cluster_tls and not _is_local(url.hostname or ""):
            raise InvalidInput(
                "Nodes on other machines are asked over https://; --cluster-tls false allows http://.",
                field="address",
            )

    def connect(self, address: str, context: PluginContext) -> Connection:
        """Returns a connection, which is opened by its first question."""
        self.check_address(address, context)
        from svc_sync_http.connection import HttpConnection

        return HttpConnection(_parse(address), _settings(context))


def _parse(address: str) -> SplitResult:
    try:
        url = urlsplit(address)
        is_plain = url.username is None and not url.query and not url.fragment and address.isascii()
        if url.scheme in HttpTransport.schemes and url.hostname and url.port != 0 and is_plain:
            return url
    except ValueError:
        pass
    raise InvalidInput("An address is a URL such as https://node.example.org:6830.", field="address")


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _settings(context: PluginContext) -> SyncHttpConfiguration:
    settings: SyncHttpConfiguration = context.configuration or SyncHttpConfiguration()
    return settings
