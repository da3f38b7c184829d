"""Who has no right to be there tries to get in: forged tokens, guessed and spent ones, cookies, links.

Every attempt stands in docs/security/attempts.md.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from attack.strangers import HIDDEN, Caller, World, assert_refused, until_let
from svc_blackbox.client import Response, files

ROOT_ID = "00000000-0000-0000-0000-000000000000"
WHOAMI = "/system/whoami"


def part(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def parts_of(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    header, claims, signature = (base64.urlsafe_b64decode(text + "==") for text in token.split("."))
    return json.loads(header), json.loads(claims), signature


def forged(header: Any, claims: Any, signature: bytes = b"") -> str:
    return f"{part(header)}.{part(claims)}.{part(signature)}"


def with_hmac(header: Any, claims: Any, key: bytes) -> str:
    text = f"{part(header)}.{part(claims)}"
    return f"{text}.{part(hmac.digest(key, text.encode(), hashlib.sha256))}"


def with_own_key(header: Any, claims: Any) -> str:
    text = f"{part(header)}.{part(claims)}"
    return f"{text}.{part(Ed25519PrivateKey.generate().sign(text.encode()))}"


def claims_of_root(claims: dict[str, Any]) -> dict[str, Any]:
    return {**claims, "sub": ROOT_ID, "scope": "user"}


Forge = Callable[[dict[str, Any], dict[str, Any], bytes, str], str]
"""Makes a token out of the header, claims, signature and text of one that is good."""

FORGERIES: dict[str, Forge] = {
    "none": lambda h, c, s, t: forged({**h, "alg": "none"}, claims_of_root(c)),
    "None": lambda h, c, s, t: forged({**h, "alg": "None"}, claims_of_root(c)),
    "NONE with the signature": lambda h, c, s, t: forged({**h, "alg": "NONE"}, c, s),
    "no algorithm": lambda h, c, s, t: forged({"kid": h["kid"], "typ": "JWT"}, c, s),
    "empty algorithm": lambda h, c, s, t: forged({**h, "alg": ""}, c, s),
    "algorithm null": lambda h, c, s, t: forged({**h, "alg": None}, c, s),
    "algorithm in a list": lambda h, c, s, t: forged({**h, "alg": ["EdDSA"]}, c, s),
    "algorithm in small letters": lambda h, c, s, t: forged({**h, "alg": "eddsa"}, c, s),
    "ES256": lambda h, c, s, t: forged({**h, "alg": "ES256"}, c, s),
    "RS256": lambda h, c, s, t: forged({**h, "alg": "RS256"}, c, s),
    "HS256 with the kid": lambda h, c, s, t: with_hmac({**h, "alg": "HS256"}, c, h["kid"].encode()),
    "HS256 with nothing": lambda h, c, s, t: with_hmac({**h, "alg": "HS256"}, c, b""),
    "HS256 with zeros": lambda h, c, s, t: with_hmac({**h, "alg": "HS256"}, c, bytes(32)),
    "EdDSA with a key of one's own": lambda h, c, s, t: with_own_key(h, claims_of_root(c)),
    "a key of one's own in the header": lambda h, c, s, t: with_own_key(
        {**h, "jwk": {"kty": "OKP", "crv": "Ed25519", "x": part(bytes(32))}}, claims_of_root(c)
    ),
    "a key at an address": lambda h, c, s, t: with_own_key(
        {**h, "jku": "http://127.0.0.1:9/keys", "x5u": "http://127.0.0.1:9/"}, claims_of_root(c)
    ),
    "a signature of zeros": lambda h, c, s, t: forged(h, c, bytes(64)),
    "a signature of another length": lambda h, c, s, t: forged(h, c, s[:63]),
    "a signature with more behind it": lambda h, c, s, t: forged(h, c, s + b"x"),
    "one bit of the signature": lambda h, c, s, t: forged(h, c, bytes([s[0] ^ 1]) + s[1:]),
    "no signature": lambda h, c, s, t: t.rpartition(".")[0] + ".",
    "another subject": lambda h, c, s, t: forged(h, {**c, "sub": ROOT_ID}, s),
    "another scope": lambda h, c, s, t: forged(h, {**c, "scope": "user"}, s),
    "a later end": lambda h, c, s, t: forged(h, {**c, "exp": c["exp"] + 10**6}, s),
    "a kid of no key": lambda h, c, s, t: with_own_key({**h, "kid": "0" * 16}, c),
    "a kid that is a path": lambda h, c, s, t: with_own_key({**h, "kid": "../auth-secrets"}, c),
    "a kid that is a file": lambda h, c, s, t: with_own_key({**h, "kid": "/dev/null"}, c),
    "a kid with NUL": lambda h, c, s, t: with_own_key({**h, "kid": h["kid"][:15] + "\0"}, c),
    "a kid of 16 Arabic digits": lambda h, c, s, t: with_own_key({**h, "kid": "\u0661" * 16}, c),
    "a kid that is a number": lambda h, c, s, t: with_own_key({**h, "kid": 7}, c),
    "a kid that is SQL": lambda h, c, s, t: with_own_key({**h, "kid": "' OR 1=1 --"}, c),
    "a kid that is large": lambda h, c, s, t: with_own_key({**h, "kid": "a" * 5000}, c),
    "no kid": lambda h, c, s, t: with_own_key({"alg": "EdDSA"}, c),
    "critical fields": lambda h, c, s, t: forged({**h, "crit": ["exp"], "exp": 1}, c, s),
    "unencoded payload": lambda h, c, s, t: forged({**h, "b64": False, "crit": ["b64"]}, c, s),
    "claims that are a list": lambda h, c, s, t: with_own_key(h, [c]),
    "claims that are null": lambda h, c, s, t: with_own_key(h, None),
    "an end that is huge": lambda h, c, s, t: with_own_key(h, {**c, "exp": 10**400}),
    "an end that is infinite": lambda h, c, s, t: with_own_key(h, {**c, "exp": float("inf")}),
    "a header that is nested": lambda h, c, s, t: f"{part(b'[' * 2000 + b']' * 2000)}.{part(c)}.{part(s)}",
    "claims that are nested": lambda h, c, s, t: f"{part(h)}.{part(b'[' * 2000)}.{part(s)}",
    "a token in a token": lambda h, c, s, t: forged({**h, "cty": "JWT"}, t.encode(), s),
    "five parts": lambda h, c, s, t: t + ".." + part(s),
    "two parts": lambda h, c, s, t: t.rpartition(".")[0],
    "a token twice": lambda h, c, s, t: f"{t},{t}",
    "a token and a word": lambda h, c, s, t: f"{t} root",
    "padding": lambda h, c, s, t: t + "==",
    "a mark in the signature": lambda h, c, s, t: t[:-9] + "!" + t[-9:],
    "a percent sign in the signature": lambda h, c, s, t: t[:-9] + "%" + t[-9:],
    "a refresh token": lambda h, c, s, t: "rt_" + "0" * 32 + "_0_" + "0" * 128,
    "dots": lambda h, c, s, t: "..",
    "a megabyte less a bit": lambda h, c, s, t: t + "A" * 60_000,
}


def ask_as(world: World, token: str, target: str = WHOAMI) -> Response:
    return Caller(world, "forger", token).ask("GET", target)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_token_is_refused_with_the_same_words(world: World, name: str) -> None:
    good = world.callers["link"].token
    assert good is not None
    token = FORGERIES[name](*parts_of(good), good)
    response = ask_as(world, token)
    if len(token) > 60_000:
        assert response.status in (400, 401, 431)
        return
    assert_refused(response)
    assert response.json()["error"] == ask_as(world, "x.y.z").json()["error"]
    assert ask_as(world, good).status == 200


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer null",
        "Bearer undefined",
        "Basic {token}",
        "Token {token}",
        "Negotiate {token}",
        "Bearer\t{token}x",
        "Bearer Bearer {token}",
        "Bearer {token}, Bearer {token}",
        "bearer:{token}",
        "Bearer {key}",
        "Basic cm9vdDo=",
        "Digest username=root",
        "Bearer {cookie_of_nobody}",
    ],
)
def test_credentials_in_another_form_are_nobody(world: World, value: str) -> None:
    bob = world.callers["bob"]
    value = value.format(token=bob.token, key=bob.key, cookie_of_nobody="svc_share=x")
    response = Caller(world, "x").ask("GET", WHOAMI, headers={"Authorization": value})
    assert response.status in (400, 401), response.body


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-User": "root"},
        {"X-Remote-User": "root"},
        {"Remote-User": "root"},
        {"X-Svc-User": ROOT_ID},
        {"X-Api-Key": "{key}"},
        {"X-Auth-Token": "{token}"},
        {"X-Original-URL": "/share"},
        {"X-Rewrite-URL": "/share"},
        {"X-HTTP-Method-Override": "OPTIONS"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Cookie": "token={token}"},
        {"Cookie": "svc_share={token}"},
        {"Cookie": "Authorization=Bearer {token}"},
        {"Proxy-Authorization": "Bearer {token}"},
        {"Sec-WebSocket-Protocol": "bearer, {token}"},
        {"Authorization_": "Bearer {token}"},
    ],
    ids=str,
)
def test_no_other_header_says_who_somebody_is(world: World, headers: dict[str, str]) -> None:
    bob = world.root
    sent = {name: value.format(token=bob.token, key=bob.key) for name, value in headers.items()}
    for target in (WHOAMI, files(HIDDEN)):
        assert Caller(world, "x").ask("GET", target, headers=sent).status == 401


@pytest.mark.parametrize("target", [WHOAMI, files(HIDDEN), "/share/files/", "/auth/keys", "/system/users"])
@pytest.mark.parametrize("name", ["token", "access_token", "api_key", "key", "authorization"])
def test_no_parameter_says_who_somebody_is(world: World, target: str, name: str) -> None:
    value = world.root.token if "token" in name else world.root.key
    assert Caller(world, "x").ask("GET", f"{target}?{name}={value}").status == 401


COOKIE_TARGETS = [
    "/files/",
    "/files/docs/open/a.txt",
    "/engine/docs/open/a.txt",
    "/system/whoami",
    "/auth/keys",
    "/files/share-links",
    "/files/shared-with-me",
    "/versions/log",
    "/links/docs/open/out",
    "/Share/files/",
    "//share/files/",
    "/share/../files/docs/open/a.txt",
    "/share/%2e%2e/files/docs/open/a.txt",
    "/share/files/../../files/docs/open/a.txt",
    "/./share/files/",
    "/share%2Fsession",
    "/versions/history/docs/open/a.txt",
    "/blobs/check",
]


@pytest.mark.parametrize("target", COOKIE_TARGETS)
def test_the_cookie_of_a_link_opens_its_pages_alone(world: World, target: str) -> None:
    response = world.callers["cookie"].ask("GET", target)
    assert response.status in (400, 401, 404, 405), (response.status, response.body[:200])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "MOVE"])
@pytest.mark.parametrize("target", ["/share/files/", "/share/files/docs/open/a.txt", "/share/session"])
def test_the_cookie_of_a_link_changes_nothing(world: World, method: str, target: str) -> None:
    response = world.callers["cookie"].ask(method, target, body=b"")
    assert response.status in (204, 400, 401, 404, 405), (response.status, response.body[:200])
    assert "Set-Cookie" not in response
    assert response.status != 204 or method == "OPTIONS"


BAD_KEYS: dict[str, Any] = {
    "empty": "",
    "the prefix": "svc_k_",
    "of no record": "svc_k_" + "0" * 32 + "_" + "0" * 64,
    "the secret of zeros": "{id}_" + "0" * 64,
    "a secret that is short": "{id}_0",
    "in capitals": "{KEY}",
    "cut": "{cut}",
    "with NUL": "{key}\0",
    "with a line": "{key}\nsvc_k_",
    "twice": "{key}{key}",
    "full-width digits": "svc_k_" + "\uff10" * 32 + "_" + "\uff10" * 64,
    "10,000 characters": "svc_k_" + "0" * 10_000,
    "a wildcard": "svc_k_*",
    "a path": "svc_k_../../auth-secrets/hash-key",
    "a list": ["svc_k_"],
    "null": None,
    "true": True,
    "an object": {"$ne": ""},
    "a refresh token": "rt_" + "0" * 32 + "_0_" + "0" * 128,
    "an access token": "{token}",
}


@pytest.mark.parametrize("target", ["/auth/token", "/share/session"])
@pytest.mark.parametrize("name", BAD_KEYS)
def test_what_is_no_key_gets_nothing(world: World, target: str, name: str) -> None:
    bob, value = world.callers["bob"], BAD_KEYS[name]
    if isinstance(value, str):
        for mark, text in {
            "{id}": bob.key.rpartition("_")[0],
            "{KEY}": bob.key.upper(),
            "{cut}": bob.key[:-1],
            "{key}": bob.key,
            "{token}": str(bob.token),
        }.items():
            value = value.replace(mark, text)
    member = "api_key" if target == "/auth/token" else "key"
    response = until_let(lambda: Caller(world, "x").ask("POST", target, {member: value}))
    assert response.status == (401 if isinstance(value, str) and len(value) < 4_000 else 400) or (
        isinstance(value, str) and len(value) > 4_000 and response.status in (401, 413)
    ), (response.status, response.body)
    assert "Set-Cookie" not in response
    assert bob.key not in response.body.decode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"{",
        b'"svc_k_"',
        b"\xff\xfe",
        b'{"api_key": "\\ud800"}',
        b'{"api_key": "\xed\xa0\x80"}',
        b'{"api_key": "a", "api_key": 1}',
        b"[" * 10_000,
        b'{"a":' * 2_000,
        b'{"api_key": ' + b"9" * 10_000 + b"}",
        b'{"api_key": "a", "admin": true}',
        b'{"api_key": "' + b"a" * 1_000_000 + b'"}',
        b'{"api_key": 1e999}',
    ],
    ids=lambda body: repr(body[:24]),
)
@pytest.mark.parametrize(
    "target", ["/auth/token", "/auth/refresh", "/auth/logout", "/share/session", "/auth/magic-link"]
)
def test_bodies_that_are_bombs_are_refused(world: World, target: str, body: bytes) -> None:
    body = body.replace(
        b"api_key", {"/auth/token": b"api_key", "/share/session": b"key"}.get(target, b"refresh_token")
    )
    fields = {"Content-Type": "application/json"}
    response = until_let(lambda: Caller(world, "x").ask("POST", target, headers=fields, body=body))
    assert response.status in (400, 401, 413), (response.status, response.body[:300])
