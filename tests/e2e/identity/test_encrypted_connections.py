"""TLS: which versions a server speaks, and whom a client believes."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from svc.errors import ServiceUnavailable
from svc_client import Client
from svc_server.listening import make_tls_context

ANSWER = b'{"status": "healthy"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for localhost that nobody has signed, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = str(folder / "cert.pem"), str(folder / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


@pytest.fixture(scope="module")
def context(certificate: tuple[str, str]) -> ssl.SSLContext:
    """What ``svc start`` serves TLS with."""
    made = make_tls_context(*certificate)
    assert made is not None
    return made


@pytest.fixture
def server(context: ssl.SSLContext) -> Iterator[tuple[int, list[bytes]]]:
    """A port with that TLS, and what clients have sent there behind a handshake that worked."""
    listener = socket.create_server(("127.0.0.1", 0))
    received: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(30)
                try:
                    with context.wrap_socket(connection, server_side=True) as wrapped:
                        received.append(wrapped.recv(65536))
                        wrapped.sendall(HEAD % len(ANSWER) + ANSWER)
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1], received
    with closing(listener):
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(30)


def test_a_server_speaks_tls_1_2_and_1_3_and_nothing_older(context: ssl.SSLContext) -> None:
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert context.maximum_version in (ssl.TLSVersion.MAXIMUM_SUPPORTED, ssl.TLSVersion.TLSv1_3)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(
    server: tuple[int, list[bytes]], certificate: tuple[str, str], version: ssl.TLSVersion
) -> None:
    trust = ssl.create_default_context(cafile=certificate[0])
    trust.minimum_version = trust.maximum_version = version
    with (
        socket.create_connection(("127.0.0.1", server[0]), timeout=30) as plain,
        trust.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        assert connection.version() == {771: "TLSv1.2", 772: "TLSv1.3"}[version]


def test_every_cipher_suite_has_forward_secrecy_and_none_is_known_to_be_weak(context: ssl.SSLContext) -> None:
    names = [suite["name"] for suite in context.get_ciphers()]
    assert [name for name in names if not name.startswith(("TLS_", "ECDHE-", "DHE-"))] == []
    assert [
        name for name in names if name.endswith("-SHA") or "RC4" in name or "DES" in name or "NULL" in name
    ] == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_client_sends_nothing_to_a_server_whose_certificate_it_can_not_check(
    server: tuple[int, list[bytes]], certificate: tuple[str, str], host: str
) -> None:
    port, received = server
    trusted = certificate[0] if host == "127.0.0.1" else None  # known, but of another name; or not known
    with (
        Client(f"https://{host}:{port}", token="the-token-of-somebody", ca_file=trusted) as client,
        pytest.raises(ServiceUnavailable, match="cannot be trusted") as refused,
    ):
        client.system.health()
    assert received == []
    assert "the-token-of-somebody" not in str(refused.value)
