"""Where a server listens: the loopback rule, the socket, and what goes wrong with it."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
import stat

import click

from svc.errors import UsageError

__all__ = ["TLS_CIPHERS", "bind_socket", "choose_host", "is_loopback", "make_tls_context", "url_of"]

BACKLOG = 2048


def choose_host(host: str | None, loopback_only: bool) -> str:
    """Returns the address to listen on; whoever names a ``host`` takes the responsibility for it."""
    if host is not None:
        return host
    return "127.0.0.1" if loopback_only else "0.0.0.0"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bind_socket(host: str, port: int) -> socket.socket:
    """Returns a bound and listening TCP socket; UsageError says why the address can't be had."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UsageError(f"The host {host!r} is not an address of this machine.", field="host") from None
    family, kind, protocol, _, address = min(found, key=lambda item: item[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _explain(host, port, error) from None
    return listener


TLS_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: forward secrecy and authenticated encryption alone. TLS 1.3 has nothing else."""


def make_tls_context(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """Checks the TLS files by loading them, or raises UsageError; None when TLS isn't asked for.

    Says so on standard error if everybody on this machine may read the key.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "--tls-cert" if certificate is None else "--tls-key"
        raise UsageError(f"TLS needs both --tls-cert and --tls-key; {missing} is missing.")
    for option, path in (("--tls-cert", certificate), ("--tls-key", key)):
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise UsageError(f"{option}: {path} can't be read: {error.strerror}.") from None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise UsageError(f"The key {key} does not belong to the certificate {certificate}.") from None
        raise UsageError(f"{certificate} and {key} are not a certificate and a key in PEM.") from None
    except _EncryptedKeyError:
        raise UsageError(f"The key {key} is encrypted; the server needs it in the clear.") from None
    if os.stat(key).st_mode & stat.S_IROTH:
        click.echo(f"svc: Everybody on this machine may read the key {key}: chmod o-r {key}.", err=True)
    return context


def url_of(listener: socket.socket, *, tls: bool) -> str:
    """Returns the URL of a listening socket; what listens everywhere is named by its loopback address."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


class _EncryptedKeyError(Exception):
    """OpenSSL asked for a password."""


def _no_password() -> str:
    raise _EncryptedKeyError


def _explain(host: str, port: int, error: OSError) -> UsageError:
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return UsageError(f"{where} is in use by another program; choose another --port.", field="port")
    if error.errno == errno.EACCES:
        return UsageError(f"{where} may not be used without special rights; choose a --port from 1024 on.")
    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"The host {host!r} is not an address of this machine.", field="host")
    return UsageError(f"{where} can't be listened on: {error.strerror}.")
