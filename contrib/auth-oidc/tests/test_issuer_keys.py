"""Fetching and keeping the keys: what the issuer says, how often it is asked, and what is not believed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from svc_auth_oidc.configuration import OidcSettings
from svc_auth_oidc.documents import FetchFailed, SigningKey, fetch_keys, is_trusted_url
from svc_auth_oidc.issuer import IssuerKeys

from svc.errors import ServiceUnavailable


def key(name: str) -> SigningKey:
    return SigningKey({"kid": name}, ("EdDSA",), object())


class Source:
    """Keys by hand, and a clock."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.now = 1000.0
        self.fetches = 0

    def fetch(self, issuer: str, timeout_s: float):
        self.fetches += 1
        if not self.names:
            raise FetchFailed("nothing")
        return {name: key(name) for name in self.names}

    def keys(self, **settings) -> IssuerKeys:
        return IssuerKeys(
            "https://issuer.example", OidcSettings(**settings), fetch=self.fetch, clock=lambda: self.now
        )


def test_they_are_fetched_once_and_again_when_they_are_old():
    source = Source("a")
    keys = source.keys(refresh_s=600)
    first = keys.find("a")
    assert first is not None
    assert keys.find("a") is first
    assert source.fetches == 1
    source.now += 600
    assert keys.find("a") is first  # the same key is the same object
    assert source.fetches == 2


def test_unknown_ids_make_no_more_fetches_than_one_in_a_while():
    source = Source("a")
    keys = source.keys(retry_s=10)
    assert [keys.find(f"made-up-{number}") for number in range(100)] == [None] * 100
    assert source.fetches == 1
    source.now += 10
    source.names = ("a", "b")
    assert keys.find("b") is not None
    assert source.fetches == 2


def test_old_keys_go_on_without_the_issuer_for_a_time_that_ends():
    source = Source("a")
    keys = source.keys(refresh_s=600, retry_s=10, stale_s=3600)
    first = keys.find("a")
    source.names = ()
    source.now += 600
    assert keys.find("a") is first
    assert keys.is_failing
    source.now += 2999
    assert keys.find("a") is first
    source.now += 1
    with pytest.raises(ServiceUnavailable):
        keys.find("a")
    source.names = ("a",)
    source.now += 10
    assert keys.find("a") is first
    assert not keys.is_failing


def test_many_who_wait_for_the_first_keys_share_one_fetch_and_the_others_are_told():
    source = Source("a")
    begun, go_on = threading.Event(), threading.Event()

    def slowly(issuer: str, timeout_s: float):
        begun.set()
        assert go_on.wait(60)
        return source.fetch(issuer, timeout_s)

    keys = IssuerKeys(
        "https://issuer.example", OidcSettings(retry_s=0), fetch=slowly, clock=lambda: source.now
    )
    told: list[object] = []

    def find(_: int) -> None:
        try:
            told.append(keys.find("a"))
        except ServiceUnavailable:
            told.append(None)
            go_on.set()

    with ThreadPoolExecutor(17) as pool:
        list(pool.map(find, range(17)))
    assert begun.is_set()
    assert source.fetches == 1
    assert told.count(None) == 1
    assert len({id(found) for found in told if found is not None}) == 1


def test_keys_come_from_a_real_issuer(issuer):
    found = fetch_keys(issuer.url, 10)
    assert set(found) == {"key-1", None}
    assert found["key-1"].algorithms == ("EdDSA",)
    issuer.rotate("ES256", keep=True)
    assert set(fetch_keys(issuer.url, 10)) == {"key-1", "key-2"}


def test_what_checks_no_signature_is_no_key(issuer):
    issuer.rotate("weak")
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "shared", "alg": "HS256"}
    bad = [
        *issuer.keys,
        secret,
        {**secret, "alg": "RS256"},
        {"kty": "RSA", "kid": "half", "n": "AQAB"},
        {"kty": "EC", "crv": "P-256", "kid": "off", "x": "AA", "y": "AA"},
        {"kty": ["RSA"], "kid": 7},
        {"use": "enc"},
    ]
    issuer.order("publish", keys=bad)
    with pytest.raises(FetchFailed, match="no key"):
        fetch_keys(issuer.url, 10)
    kid = issuer.rotate("ES256", keep=True)
    assert fetch_keys(issuer.url, 10)[kid].algorithms == ("ES256",)


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://another.example"},
        {"jwks_uri": "http://issuer.example/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": 7},
        {"padding": "x" * 1_100_000},
    ],
)
def test_a_discovery_document_that_is_not_right_is_not_believed(issuer, said):
    issuer.order("say", **said)
    with pytest.raises(FetchFailed):
        fetch_keys(issuer.url, 10)


def test_nobody_there_is_a_failed_fetch(issuer):
    issuer.order("down", down=True)
    with pytest.raises(FetchFailed):
        fetch_keys(issuer.url, 10)
    with pytest.raises(FetchFailed):
        fetch_keys("http://127.0.0.1:1", 10)


@pytest.mark.parametrize(
    ("url", "trusted"),
    [
        ("https://issuer.example/realm", True),
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
        ("http://issuer.example", False),
        ("http://127.0.0.1.issuer.example", False),
        ("https://user:word@issuer.example", False),
        ("https://issuer.example?x", False),
        ("https://", False),
        ("ftp://localhost", False),
    ],
)
def test_only_tls_and_loopback_are_trusted(url, trusted):
    assert is_trusted_url(url) is trusted


def test_no_redirect_is_followed():
    asked = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(FetchFailed, match="302"):
            fetch_keys(f"http://127.0.0.1:{server.server_port}", 10)
        server.shutdown()
    assert asked == ["/.well-known/openid-configuration"]
