"""Whether a server answers, asked the way a client would."""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any

__all__ = ["wait_until_answered"]

_REQUEST = b"GET /system/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def wait_until_answered(address: Any, *, tls: bool, seconds: float = 30.0) -> bool:
    """Asks an address, whatever its certificate, for its health until it answers 200. Blocks."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if _ask(address, tls=tls).startswith(b"HTTP/1.1 200"):
                return True
        except OSError:
            pass
        time.sleep(0.05)
    return False


def _ask(address: Any, *, tls: bool) -> bytes:
    host, port = address[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = socket.create_connection((host, port), timeout=5)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = context.wrap_socket(connection)
    with connection:
        connection.sendall(_REQUEST)
        return connection.recv(64)
