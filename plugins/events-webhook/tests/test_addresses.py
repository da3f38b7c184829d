"""Webhooks go to the internet alone, whatever a URL or a name says."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest
from svc_events_webhook.addresses import is_public, parse_target, resolve
from svc_events_webhook.configuration import WebhookConfiguration

from svc.errors import InvalidInput

STRICT = WebhookConfiguration()
OPEN = WebhookConfiguration(allow_private=True, allow_any_port=True)

PRIVATE = (
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1"),
    *("169.254.169.254", "192.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.1", "224.0.0.1", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
    # IPv4 within IPv6: mapped, 6to4, Teredo, NAT64 of both kinds, and compatible.
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "2002:7f00:1::", "2002:a9fe:a9fe::1", "::127.0.0.1"),
    *("192.88.99.1", "fec0::1", "3fff::1", "5f00::1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2001:0:1::80ff:fffe"),
)


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_the_internet_is_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    shown = f"[{address}]" if ":" in address else address
    with pytest.raises(InvalidInput, match="private"):
        parse_target(f"http://{shown}/", STRICT)
    assert parse_target(f"http://{shown}/", OPEN).host == address


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_the_internet_is_fine(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        # Spellings of 127.0.0.1 that the resolver understands, though they are no dotted quads.
        *("http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/"),
        *("http://0x7f.1/", "http://0/", "http://localhost/", "http://LOCALHOST./"),
    ],
)
def test_other_spellings_are_judged_by_what_they_stand_for(url: str) -> None:
    target = parse_target(url, STRICT)
    with pytest.raises(OSError):
        resolve(target, STRICT)


def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(host: str, port: int, **_facts: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, port)) for address in ("8.8.8.8", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    target = parse_target("http://example.org/", STRICT)
    with pytest.raises(PermissionError, match="private"):
        resolve(target, STRICT)
    assert resolve(target, OPEN) == "8.8.8.8"


def test_a_name_is_looked_up_once_and_the_connection_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that says something else the second time gains nothing (DNS rebinding)."""
    from svc_events_webhook.sending import Sender

    asked: list[str] = []
    connected: list[Any] = []

    def look_up(host: str, port: int, *_facts: Any, **_named: Any) -> list[Any]:
        asked.append(host)
        address = "8.8.8.8" if host == "example.org" and len(asked) == 1 else host
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    class Refusing(socket.socket):
        def connect(self, address: Any) -> None:
            connected.append(address)
            raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "socket", Refusing)
    answer = Sender("http://example.org/", STRICT).send(b"{}", {})
    assert answer.error is not None
    assert connected == [("8.8.8.8", 80)]


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.org/", "example.org", "http://", "http:///x", "file:///etc/passwd", ""),
        *("http://user@example.org/", "http://user:secret@example.org/", "http://example.org/#part"),
        *("http://example.org:22/", "http://example.org:99999/", "http://example.org:x/"),
        *("http://exa mple.org/", "http://example.org/\r\nHost: other", "http://example.org\\@127.0.0.1/"),
        *("http://[::1/", "http://" + "a" * 3_000, "https://ex\xe4mple.org/"),
    ],
)
def test_what_is_no_url_of_a_webhook_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_target(url, STRICT)
    assert refused.value.details["field"] == "url"


def test_a_url_is_used_as_it_is() -> None:
    target = parse_target("https://Example.org/a%20b?c=d", STRICT)
    assert (target.host, target.port, target.path, target.authority) == (
        "example.org",
        443,
        "/a%20b?c=d",
        "Example.org",
    )
