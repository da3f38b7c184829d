"""Links that sign in, with a real mail server behind a real server with two workers."""

from __future__ import annotations

import datetime as dt
import email
import email.policy
import ipaddress
import queue
import re
import signal
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from svc_testing import Server, free_port, run_svc, start_server
from svc_testing.processes import Response

ANN = "ann@example.com"
ROOT_KEY = re.compile(r"svc_k_\w+")
LINK = re.compile(r"https://svc\.example/auth/magic-link/verify\?code=([\w-]{43})\s")


@dataclass
class Mailbox:
    """What a mail server has taken; a handler of aiosmtpd.

    Attributes:
        mails: each with its recipients and whether it came encrypted.
        refusals: answers to the next mails, in turn, in the place of taking them.
    """

    mails: queue.Queue[tuple[list[str], bool, EmailMessage]] = field(default_factory=queue.Queue)
    refusals: list[str] = field(default_factory=list)
    tried: int = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.tried += 1
        if self.refusals:
            return self.refusals.pop(0)
        assert isinstance(envelope.content, bytes)
        message = email.message_from_bytes(envelope.content, policy=email.policy.SMTP)
        assert isinstance(message, EmailMessage)
        self.mails.put((envelope.rcpt_tos, session.ssl is not None, message))
        return "250 taken"


def make_certificate(directory: Path, name: str) -> tuple[Path, Path]:
    """A certificate that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    if name == "localhost":
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = directory / f"{name}.pem", directory / f"{name}.key"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate_file, key_file


def tls_of(files: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    return context


def sign_in(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: Any) -> AuthResult:
    known = isinstance(data, LoginPassword) and (data.login, data.password) == (b"svc", b"sesame")
    return AuthResult(success=known, handled=known)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    directory = tmp_path_factory.mktemp("certificates")
    return {name: make_certificate(directory, name) for name in ("localhost", "elsewhere.example")}


@pytest.fixture(scope="module")
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture(scope="module")
def mail_port(mailbox: Mailbox, certificates: dict[str, tuple[Path, Path]]) -> Iterator[int]:
    """A mail server that takes mail over STARTTLS alone, from whoever signs in."""
    controller = Controller(
        mailbox,
        hostname="127.0.0.1",
        port=free_port(),
        tls_context=tls_of(certificates["localhost"]),
        require_starttls=True,
        auth_required=True,
        authenticator=sign_in,
    )
    controller.start()
    yield controller.port
    controller.stop()


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, mail_port: int, certificates: dict[str, tuple[Path, Path]]
) -> Iterator[Server]:
    variables = {
        "SVC_MAGIC_LINK_BASE_URL": "https://svc.example",
        "SVC_SMTP_HOST": "127.0.0.1",
        "SVC_SMTP_PORT": str(mail_port),
        "SVC_SMTP_CA": str(certificates["localhost"][0]),
        "SVC_SMTP_USER": "svc",
        "SVC_SMTP_PASSWORD": "sesame",
        "SVC_SMTP_FROM": "Svc <svc@svc.example>",
    }
    database = tmp_path_factory.mktemp("served") / "x.svcdb"
    options = ("--auth", "self-contained", "--workers", "2")
    with start_server(database, *options, plugins=None, env=variables) as running:
        make_users(running)
        yield running


def send(server: Server, method: str, path: str, value: Any = None, token: str = "") -> Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    body = None
    if value is not None:
        headers["Content-Type"] = "application/json"
        body = msgspec.json.encode(value)
    return server.request(method, path, body=body, headers=headers)


def make_users(server: Server) -> None:
    """Users who are known, of whom each test takes its own: links are counted by address."""
    found = ROOT_KEY.search(server.output)
    assert found
    token = send(server, "POST", "/auth/token", {"api_key": found[0]}).json()["token"]
    for name in (ANN, "bob@example.com", "cat@example.com", "gone@example.com"):
        made = send(server, "POST", "/system/users", {"username": name}, token)
        assert made.status == 201, made.body
    send(server, "DELETE", f"/system/users/{made.json()['user_id']}", token=token)


def ask(server: Server, address: str) -> Response:
    return send(server, "POST", "/auth/magic-link", {"email": address})


def verify(server: Server, code: str) -> Response:
    return server.get(f"/auth/magic-link/verify?code={code}")


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


def code_of(mailbox: Mailbox, address: str) -> str:
    recipients, encrypted, message = mailbox.mails.get(timeout=60)
    assert recipients == [address]
    assert encrypted
    found = LINK.search(message.get_content())
    assert found, message.as_string()
    return found[1]


def test_a_link_comes_by_mail_over_starttls_and_signs_in_once(served: Server, mailbox: Mailbox) -> None:
    asked = ask(served, ANN.upper())
    assert asked.status == 200
    code = code_of(mailbox, ANN)
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: verify(served, code), range(32)))
    assert sorted(answer.status for answer in answers) == [200] + [401] * 31
    (good,) = [answer for answer in answers if answer.status == 200]
    me = send(served, "GET", "/system/whoami", token=good.json()["token"]).json()
    assert (me["name"], me["key_id"]) == (ANN, None)
    assert code not in served.errors
    assert good.json()["token"] not in served.errors


def test_nobody_learns_who_is_known_and_nobody_unknown_gets_mail(served: Server, mailbox: Mailbox) -> None:
    addresses = ["nobody@example.com", "gone@example.com", "bob@example.com"]
    answers = [ask(served, address) for address in addresses]
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    code_of(mailbox, "bob@example.com")
    assert mailbox.mails.empty()


def test_the_count_is_that_of_all_workers(served: Server) -> None:
    statuses = [ask(served, "counted@example.com").status for _ in range(12)]
    assert statuses == [200] * 5 + [429] * 7


def test_a_mail_that_is_refused_for_good_is_logged_without_its_code(served: Server, mailbox: Mailbox) -> None:
    mailbox.refusals = ["554 no: https://svc.example/auth/magic-link/verify?code=quoted"]
    ask(served, "cat@example.com")
    wait_for(lambda: "it is given up" in served.errors)
    assert "the mail server answered 554" in served.errors
    assert "quoted" not in served.errors
    assert "cat@example.com" not in served.errors
    assert served.get("/system/health").json()["status"] == "healthy", "it would tell who is known"


def test_the_count_outlives_a_restart(tmp_path: Path) -> None:
    database = tmp_path / "x.svcdb"
    with start_server(database, "--auth", "self-contained", plugins=None) as first:
        assert [ask(first, ANN).status for _ in range(6)] == [200] * 5 + [429]
    with start_server(database, "--auth", "self-contained", plugins=None) as second:
        assert ask(second, ANN).status == 429
        assert ask(second, "bob@example.com").status == 200


def test_links_are_logged_where_that_is_asked_for(tmp_path: Path) -> None:
    variables = {"SVC_LOG_MAGIC_LINKS": "1"}
    options = ("--auth", "self-contained", "--log-format", "json")
    with start_server(tmp_path / "x.svcdb", *options, plugins=None, env=variables) as server:
        make_users(server)
        ask(server, ANN)
        wait_for(lambda: "/auth/magic-link/verify?code=" in server.errors)
        (line,) = [line for line in server.errors.splitlines() if "verify?code=" in line]
        link = msgspec.json.decode(line)["link"]
        assert link.startswith("/auth/magic-link/verify?code=")
        assert server.get(link).status == 200


def test_authorities_that_are_not_there_end_the_start(tmp_path: Path) -> None:
    database = tmp_path / "x.svcdb"
    refused = run_svc("start", "-D", database, "--port", "0", "--smtp-ca", tmp_path / "none.pem")
    assert refused.exit_code == 2
    assert "--smtp-ca" in refused.stderr
    assert "can't be read" in refused.stderr
    assert not database.exists()


def test_links_that_were_asked_for_are_sent_before_a_worker_ends_or_counted(tmp_path: Path) -> None:
    box = Mailbox()
    controller = Controller(box, hostname="127.0.0.1", port=free_port())
    controller.start()
    variables = {
        "SVC_MAGIC_LINK_BASE_URL": "https://svc.example",
        "SVC_SMTP_HOST": "127.0.0.1",
        "SVC_SMTP_PORT": str(controller.port),
        "SVC_SMTP_SECURITY": "none",
        "SVC_SMTP_FROM": "svc@svc.example",
    }
    try:
        options = ("--auth", "self-contained", "--workers", "2")
        with start_server(tmp_path / "x.svcdb", *options, plugins=None, env=variables) as server:
            make_users(server)
            for address in (ANN, "bob@example.com", "cat@example.com"):
                assert ask(server, address).status == 200
            server.process.send_signal(signal.SIGHUP)
            dropped = re.compile(r"as the server stops: (\d+)")
            wait_for(lambda: box.mails.qsize() + sum(map(int, dropped.findall(server.errors))) >= 3)
    finally:
        controller.stop()


# -- what the sender insists on; in this process ------------------------------------------------------------


@pytest.fixture
def send_by(certificates: dict[str, tuple[Path, Path]]) -> Callable[..., None]:
    """Sends one mail by a mail server of this process."""
    from svc.plugin import Secret
    from svc_auth_magic_link.configuration import MagicLinkSettings
    from svc_auth_magic_link.mail import make_message
    from svc_auth_magic_link.mail import send as send_mail

    def send_one(port: int, address: str = ANN, **settings: Any) -> None:
        if "smtp_password" in settings:
            settings["smtp_password"] = Secret(settings["smtp_password"])
        made = MagicLinkSettings(
            base_url="https://svc.example",
            smtp_host="127.0.0.1",
            smtp_port=port,
            smtp_from="svc@svc.example",
            **{"smtp_ca": str(certificates["localhost"][0]), **settings},
        )
        send_mail(made, address, make_message(made, address, made.link("k" * 43)))

    return send_one


def run_mail_server(**options: Any) -> tuple[Controller, Mailbox]:
    box = Mailbox()
    controller = Controller(box, hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    return controller, box


def test_a_certificate_of_another_host_or_of_nobody_known_is_refused(
    certificates: dict[str, tuple[Path, Path]], send_by: Callable[..., None]
) -> None:
    controller, box = run_mail_server(tls_context=tls_of(certificates["elsewhere.example"]))
    try:
        for authority in (str(certificates["localhost"][0]), str(certificates["elsewhere.example"][0]), ""):
            with pytest.raises(ssl.SSLCertVerificationError):
                send_by(controller.port, smtp_ca=authority)
    finally:
        controller.stop()
    assert box.tried == 0


def test_a_server_without_starttls_is_told_nothing(send_by: Callable[..., None]) -> None:
    controller, box = run_mail_server(auth_require_tls=False, authenticator=sign_in)
    try:
        with pytest.raises(OSError, match="STARTTLS"):
            send_by(controller.port, smtp_user="svc", smtp_password="sesame")
        send_by(controller.port, smtp_security="none")
    finally:
        controller.stop()
    assert box.tried == 1


def test_tls_from_the_first_byte_on(
    certificates: dict[str, tuple[Path, Path]], send_by: Callable[..., None]
) -> None:
    controller, box = run_mail_server(ssl_context=tls_of(certificates["localhost"]))
    try:
        send_by(controller.port, smtp_security="tls")
    finally:
        controller.stop()
    assert box.tried == 1


def test_a_wrong_password_and_a_mailbox_that_is_not_there_are_final(
    certificates: dict[str, tuple[Path, Path]], send_by: Callable[..., None]
) -> None:
    from svc_auth_magic_link.mail import MailRefused

    options = {"tls_context": tls_of(certificates["localhost"]), "authenticator": sign_in}
    controller, box = run_mail_server(**options)
    try:
        with pytest.raises(MailRefused, match="535"):
            send_by(controller.port, smtp_user="svc", smtp_password="wrong")
        box.refusals = ["550 no such mailbox", "451 try later"]
        with pytest.raises(MailRefused, match="550"):
            send_by(controller.port)
        with pytest.raises(OSError, match="451"):
            send_by(controller.port)
        send_by(controller.port, "zoë@example.com")
    finally:
        controller.stop()


def test_a_server_that_says_nothing_is_waited_for_no_longer_than_set(send_by: Callable[..., None]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(OSError, match="timed out"):
        send_by(silent.getsockname()[1], smtp_timeout=0.2)
