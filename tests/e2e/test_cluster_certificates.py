"""Nodes behind nginx, which lets in only those that show a certificate of the cluster's own authority."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from svc_blackbox.nginx import running_nginx
from svc_blackbox.server import Server

VERIFYING = """
    server {
        listen 127.0.0.1:$port ssl;
        ssl_certificate $directory/node.pem;
        ssl_certificate_key $directory/node.key;
        ssl_client_certificate $directory/authority.pem;
        ssl_verify_client on;
        location / { proxy_pass $url; }
    }
"""


class Authority:
    """Signs certificates for nodes on this machine."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = self._sign(self._subject, self._key, is_authority=True)
        self.file = directory / f"{name}.pem"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate_file, key_file = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        certificate = self._sign(subject, key, is_authority=False)
        certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        key_file.write_bytes(key.private_bytes(*form))
        return certificate_file, key_file

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(address, critical=False)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )


@pytest.fixture
def first(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "first.svcdb")
    server.start()
    yield server
    server.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


@pytest.fixture
def behind_nginx(tmp_path: Path, first: Server, authority: Authority) -> Iterator[str]:
    """The URL of the first node, for who has a certificate."""
    authority.issue("node")
    with running_nginx(tmp_path, VERIFYING, first.url) as port:
        yield f"https://127.0.0.1:{port}"


def ask(server: Server, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    answer = server.client().request(
        method,
        path,
        body=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status == status, (answer.status, answer.body)
    return json.loads(answer.body)


def test_only_who_shows_a_certificate_of_the_authority_is_let_in(
    tmp_path: Path, first: Server, behind_nginx: str, authority: Authority
) -> None:
    ask(first, "PUT", "/files/one.txt", "one", status=201)
    certificate, key = authority.issue("second")
    other_certificate, other_key = Authority(tmp_path, "another").issue("stranger")
    trust = ("--plugin-option", f"sync.http.ca_file={authority.file}")
    own = ("--cluster-tls-cert", certificate, "--cluster-tls-key", key)
    for options in ((), ("--cluster-tls-cert", other_certificate, "--cluster-tls-key", other_key)):
        second = Server(tmp_path / "second.svcdb", *trust, *map(str, options)).start()
        try:
            refused = ask(second, "POST", "/sync/enter", {"address": behind_nginx}, status=400)
            assert "certificate" in refused["error"].lower() or "HTTP status 400" in refused["error"]
        finally:
            second.close()
    second = Server(tmp_path / "second.svcdb", *trust, *map(str, own), "--join", behind_nginx).start()
    try:
        deadline = time.monotonic() + 60
        while second.client().request("GET", "/files/one.txt").status != 200:
            assert time.monotonic() < deadline, ask(second, "GET", "/sync/status")
            time.sleep(0.2)
        assert [peer["address"] for peer in ask(second, "GET", "/sync/status")["peers"]] == [behind_nginx]
    finally:
        second.close()
