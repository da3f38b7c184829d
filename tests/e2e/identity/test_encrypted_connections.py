"""TLS: which versions a server speaks, and whom a client believes."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from svc.errors import ServiceUnavailable
from svc_blackbox.server import Server
from svc_client import Client

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
def served(
    tmp_path_factory: pytest.TempPathFactory, certificate: tuple[str, str]
) -> Iterator[tuple[str, int]]:
    """Host and port of a real server with TLS."""
    options = ("--tls-cert", certificate[0], "--tls-key", certificate[1], "--workers", "1")
    server = Server(tmp_path_factory.mktemp("served") / "tls.svcdb", *options).start()
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    assert parts.port is not None
    yield parts.hostname, parts.port
    server.close()


def spoken(served: tuple[str, int], version: ssl.TLSVersion, ciphers: str) -> str | None:
    """The version that a client agrees on with a server, of those that it offers."""
    offer = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    offer.check_hostname, offer.verify_mode = False, ssl.CERT_NONE
    offer.set_ciphers(ciphers)
    offer.minimum_version = offer.maximum_version = version
    with socket.create_connection(served, timeout=30) as plain, offer.wrap_socket(plain) as connection:
        return connection.version()


@pytest.fixture
def server(certificate: tuple[str, str]) -> Iterator[tuple[int, list[bytes]]]:
    """A port with that TLS, and what clients have sent there behind a handshake that worked."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
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


@pytest.mark.parametrize(
    ("version", "name"), [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")]
)
def test_a_server_speaks_tls_1_2_and_1_3(served: tuple[str, int], version: ssl.TLSVersion, name: str) -> None:
    assert spoken(served, version, "DEFAULT") == name


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("name", ["TLSv1", "TLSv1_1"])
def test_a_server_speaks_nothing_older(served: tuple[str, int], name: str) -> None:
    with pytest.raises(ssl.SSLError) as refused:
        spoken(served, ssl.TLSVersion[name], "ALL:@SECLEVEL=0")
    assert refused.value.reason == "TLSV1_ALERT_PROTOCOL_VERSION", "the server refuses, not this client"


@pytest.mark.parametrize("ciphers", ["kRSA", "ECDHE-ECDSA-AES128-SHA", "aNULL", "eNULL"])
def test_a_server_takes_no_cipher_suite_without_forward_secrecy_or_known_to_be_weak(
    served: tuple[str, int], ciphers: str
) -> None:
    with pytest.raises(ssl.SSLError) as refused:
        spoken(served, ssl.TLSVersion.TLSv1_2, f"{ciphers}:@SECLEVEL=0")
    assert "HANDSHAKE_FAILURE" in str(refused.value.reason)


@pytest.mark.parametrize(
    "ciphers", ["ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA", "AES128-GCM-SHA256", "DHE+AESGCM"]
)
def test_tls_1_2_has_forward_secrecy_and_authenticated_encryption_alone(
    served: tuple[str, int], ciphers: str
) -> None:
    version = ssl.TLSVersion.TLSv1_2
    for good in ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"):
        assert spoken(served, version, good) == "TLSv1.2"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        spoken(served, version, f"{ciphers}:@SECLEVEL=0")


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
        client.health()
    assert received == []
    assert "the-token-of-somebody" not in str(refused.value)
