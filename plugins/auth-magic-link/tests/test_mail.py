"""Mail servers that answer slowly, endlessly, or with what belongs in no log."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from svc_auth_magic_link.configuration import MagicLinkSettings
from svc_auth_magic_link.delivery import Delivery
from svc_auth_magic_link.mail import MailRefused, make_message, send
from svc_auth_self.api import Account

ANN = "ann@example.com"
ANN_ID = "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a90"

Answer = Callable[[socket.socket], None]


class MailServer:
    """Answers each command as a test says; takes everything where it says nothing.

    Attributes:
        answers: what to do in place of the usual answer, by the first word of a command, or ``greeting``.
        taken: mails that it has taken.
        delay_s: how long each answer takes.
    """

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.answers: dict[str, bytes | Answer] = {}
        self.taken = 0
        self.stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.stopped.set()
        self._listener.close()

    def _accept(self) -> None:
        try:
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()
        except OSError:
            pass

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, client.makefile("rb") as lines:
                self._answer(client, "greeting", b"220 here\r\n")
                for line in lines:
                    word = line[:4].strip().decode("latin-1").upper()
                    self._answer(client, word, b"354 go on\r\n" if word == "DATA" else b"250 fine\r\n")
                    if word == "DATA" and "DATA" not in self.answers:
                        for text in lines:
                            if text == b".\r\n":
                                break
                        self.taken += 1
                        self._answer(client, ".", b"250 taken\r\n")
        except OSError:
            pass

    def _answer(self, client: socket.socket, word: str, usual: bytes) -> None:
        time.sleep(self.delay_s)
        answer = self.answers.get(word, usual)
        if isinstance(answer, bytes):
            client.sendall(answer)
        else:
            answer(client)


@pytest.fixture
def server() -> Iterator[MailServer]:
    made = MailServer()
    yield made
    made.close()


def settings_of(server: MailServer, **settings: Any) -> MagicLinkSettings:
    return MagicLinkSettings(
        **{
            "base_url": "https://svc.example",
            "smtp_host": "127.0.0.1",
            "smtp_port": server.port,
            "smtp_security": "none",
            "smtp_from": "svc@svc.example",
            **settings,
        }
    )


def send_one(server: MailServer, **settings: Any) -> None:
    made = settings_of(server, **settings)
    send(made, ANN, make_message(made, ANN, made.link("k" * 43)))


def test_a_mail_is_handed_over(server: MailServer) -> None:
    send_one(server)
    assert server.taken == 1


@pytest.mark.parametrize("word", ["greeting", "EHLO", "RCPT", ".", "QUIT"])
def test_an_answer_without_end_is_read_no_further(server: MailServer, word: str) -> None:
    sent = []

    def flood(client: socket.socket) -> None:
        while not server.stopped.is_set():
            client.sendall(b"250-" + b"x" * 4_000 + b"\r\n")
            sent.append(4_006)

    server.answers[word] = flood
    if word == "QUIT":
        send_one(server)  # what is said after the mail was taken changes nothing
    else:
        with pytest.raises(OSError, match="longer than 64 KiB"):
            send_one(server)
    assert sum(sent) < 20_000_000, "no more than what the system keeps on the way"


@pytest.mark.parametrize("line", [b"x", b"250-fine\r\n"])
@pytest.mark.parametrize("word", ["greeting", "MAIL"])
def test_an_answer_that_drips_is_waited_for_no_longer_than_one_that_does_not_come(
    server: MailServer, word: str, line: bytes
) -> None:
    def drip(client: socket.socket) -> None:
        while not server.stopped.is_set():
            client.sendall(line)
            time.sleep(0.05)

    server.answers[word] = drip
    began = time.monotonic()
    with pytest.raises(OSError, match="timed out"):
        send_one(server, smtp_timeout=0.5)
    assert time.monotonic() - began < 2.5


def test_the_whole_conversation_ends_though_every_answer_comes_in_time(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_auth_magic_link.conversation.CONVERSATION_TIMEOUTS", 1)
    server.delay_s = 0.6
    with pytest.raises(OSError, match="took longer than 2 s"):
        send_one(server, smtp_timeout=2)
    assert server.taken == 0
    server.delay_s = 0.0
    send_one(server, smtp_timeout=2)
    assert server.taken == 1
    assert not [one for one in threading.enumerate() if one.name == "svc-magic-link-end"], "no timer is left"


def test_bytes_that_drip_into_tls_do_not_hold_up_the_end(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drip(client: socket.socket) -> None:
        client.sendall(b"220 go on\r\n")
        client.sendall(b"\x16\x03\x03\x40\x00")  # a record of TLS of which the rest is slow to come
        while not server.stopped.is_set():
            client.sendall(b"x")
            time.sleep(0.05)

    monkeypatch.setattr("svc_auth_magic_link.conversation.CONVERSATION_TIMEOUTS", 1)
    server.answers |= {"EHLO": b"250-here\r\n250 STARTTLS\r\n", "STAR": drip}
    began = time.monotonic()
    with pytest.raises(OSError, match=r"timed out|took longer than 1 s"):
        send_one(server, smtp_timeout=1, smtp_security="starttls")
    assert time.monotonic() - began < 5


def test_a_mail_that_was_taken_counts_whatever_the_server_says_then(server: MailServer) -> None:
    server.answers["QUIT"] = b"554 no\r\n"
    send_one(server)
    assert server.taken == 1


ECHO = b"5.1.1 <ann@example.com>: no such user \x1b]0;owned\x07\x1b[2J\r\n"


@pytest.mark.parametrize("word", ["greeting", "MAIL", "RCPT", "DATA", "."])
@pytest.mark.parametrize("code", [b"550 ", b"451 "])
def test_of_a_refusal_its_numbers_alone_are_told(server: MailServer, word: str, code: bytes) -> None:
    server.answers[word] = code + ECHO
    with pytest.raises((OSError, MailRefused)) as caught:
        send_one(server)
    assert isinstance(caught.value, MailRefused) == (code == b"550 ")
    assert str(caught.value) == f"the mail server answered {code.decode().strip()} 5.1.1"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"550 no\r\n", "550"),
        (b"550-5.7.1 no\r\n550 5.7.1 no\r\n", "550 5.7.1"),
        (b"550 5.7.1\r\n", "550 5.7.1"),
        (b"550 5.7.1ann\r\n", "550"),
        (b"550 5.7.1.ann@example.com\r\n", "550"),
        (b"ann@example.com\r\n", "something else than SMTP"),
        (b"+5 ann\r\n", "something else than SMTP"),
    ],
)
def test_numbers_are_what_they_should_be(server: MailServer, answer: bytes, told: str) -> None:
    server.answers["RCPT"] = answer
    with pytest.raises((OSError, MailRefused)) as caught:
        send_one(server)
    assert str(caught.value) == f"the mail server answered {told}"


def test_the_log_has_neither_the_address_nor_what_the_server_says(
    server: MailServer, database, caplog: pytest.LogCaptureFixture
) -> None:
    class People:
        def find(self, user_id: str) -> Account | None:
            return None

        def find_by_name(self, name: str) -> Account | None:
            return Account(user_id=ANN_ID, username=ANN)

        def stamp(self) -> object:
            return None

    caplog.set_level(logging.DEBUG)
    server.answers["RCPT"] = b"550 " + ECHO
    delivery = Delivery(database, delays=(0.0, 0.0))
    delivery.request(ANN, People(), settings_of(server))
    deadline = time.monotonic() + 30
    while "it is given up" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    delivery.stop()
    assert "the mail server answered 550 5.1.1" in caplog.text
    assert ANN not in caplog.text
    assert "\x1b" not in caplog.text
    assert "owned" not in caplog.text
