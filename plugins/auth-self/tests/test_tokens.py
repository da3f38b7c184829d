"""Access tokens: what is taken, and what is not, however it is made."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from svc.plugin import ROOT_USER_ID, Credentials
from svc_auth_self.signing import SigningKeys, rotate_now
from svc_testing import AuthModeContract

from .conftest import Clock, Http, Serve  # noqa: TID252


class TestMode(AuthModeContract):
    @pytest.fixture
    def mode(self, http: Http) -> Any:
        return http.app.service.auth_mode

    @pytest.fixture
    def accepted(self, http: Http) -> list[Credentials]:
        _, ann = http.make_caller("ann")
        _, scoped = http.make_caller("ben", rules=[{"/reports/**": "-r--l---"}])
        return [
            Credentials(scheme="bearer", value=http.root),
            Credentials(scheme="bearer", value=ann),
            Credentials(scheme="bearer", value=scoped),
            Credentials(query_token=ann),
            Credentials(path="/share/files/x", header=lambda name: f"a=b; svc_share={ann}"),
        ]

    @pytest.fixture
    def refused(self, http: Http) -> list[Credentials]:
        return [
            Credentials(scheme="bearer", value=http.root[:-1]),
            Credentials(scheme="bearer", value=http.root_key),
            Credentials(query_token="nothing"),
        ]

    def test_a_cookie_counts_below_share_only_and_for_reading(self, http: Http) -> None:
        mode = http.app.service.auth_mode

        def asked(method: str, path: str) -> object:
            return mode.authenticate(
                Credentials(method=method, path=path, header=lambda name: f"svc_share={http.root}")
            )

        assert asked("GET", "/share/files/a") is not None
        assert asked("HEAD", "/share/files/a") is not None
        assert asked("POST", "/share/files/a") is None
        assert asked("GET", "/files/a") is None
        assert asked("GET", "/sharefiles") is None

    def test_over_tls_no_cookie_counts_that_another_host_can_have_set(self, http: Http) -> None:
        mode = http.app.service.auth_mode
        good, bad = f"__Host-svc_share={http.root}", "svc_share=x.y.z"

        def asked(cookies: str, *, secure: bool) -> object:
            return mode.authenticate(
                Credentials(path="/share/files/a", secure=secure, header=lambda name: cookies)
            )

        for cookies in (good, f"{bad}; {good}", f"{good}; {bad}"):
            assert asked(cookies, secure=True) is not None
            assert asked(cookies, secure=False) is not None
        assert asked(f"svc_share={http.root}", secure=True) is None
        assert asked(f"svc_share={http.root}", secure=False) is not None
        assert asked(f"__Host-svc_share=; svc_share={http.root}", secure=True) is None


def test_a_token_says_who_it_is_for_and_by_which_key(http: Http) -> None:
    answer = http.sign_in(http.root_key)
    assert answer.json["expires_in"] == 3600
    assert answer.headers["Cache-Control"] == "no-store"
    header = jwt.get_unverified_header(answer.json["token"])
    claims = jwt.decode(answer.json["token"], options={"verify_signature": False})
    me = http.whoami(answer.json["token"])
    assert header["alg"] == "EdDSA"
    assert header["kid"]
    assert claims == {
        "iss": "svc",
        "sub": ROOT_USER_ID,
        "iat": claims["exp"] - 3600,
        "exp": claims["exp"],
        "scope": f"key:{me['key_id']}",
        "sid": answer.json["refresh_token"].split("_")[1],
    }
    assert (me["user_id"], me["name"], me["is_root"]) == (ROOT_USER_ID, "root", True)
    assert me["expires_at"] == claims["exp"] * 1000


def forged(http: Http) -> dict[str, str]:
    """Tokens that nobody may take, by what is wrong with them."""
    kid, private = SigningKeys(http.database).active(60)
    key_id = http.whoami(http.root)["key_id"]
    now = int(time.time())
    good = {"iss": "svc", "sub": ROOT_USER_ID, "iat": now, "exp": now + 60, "scope": f"key:{key_id}"}
    public = private.public_key()

    def signed(claims: dict[str, Any], key: Any = private, header_kid: str | None = kid, **more: Any) -> str:
        headers = {**({} if header_kid is None else {"kid": header_kid}), **more.pop("headers", {})}
        return jwt.encode(claims, key, algorithm=more.pop("algorithm", "EdDSA"), headers=headers)

    assert http.status(signed(good)) == 200, "what the others are made of is good"

    def without(name: str) -> dict[str, Any]:
        return {key: value for key, value in good.items() if key != name}

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    header, payload, signature = signed(good).split(".")
    secret = public.public_bytes_raw()
    rsa = generate_private_key(public_exponent=65537, key_size=2048)
    return {
        "no algorithm": jwt.encode(good, None, algorithm="none", headers={"kid": kid}),
        "none with a signature": f"{part({'alg': 'none', 'kid': kid})}.{payload}.{signature}",
        "None": f"{part({'alg': 'nOnE', 'kid': kid})}.{payload}.",
        "the public key as a secret": jwt.encode(good, secret, algorithm="HS256", headers={"kid": kid}),
        "its hex as a secret": jwt.encode(good, secret.hex(), algorithm="HS256", headers={"kid": kid}),
        "another algorithm": jwt.encode(good, rsa, algorithm="RS256", headers={"kid": kid}),
        "EdDSA said of another": f"{part({'alg': 'HS256', 'kid': kid})}.{payload}.{signature}",
        "another key": signed(good, Ed25519PrivateKey.generate()),
        "unknown kid": signed(good, header_kid="0" * 16),
        "no kid": signed(good, header_kid=None),
        "a path as kid": signed(good, header_kid="../auth-secrets"),
        "a number as kid": f"{part({'alg': 'EdDSA', 'kid': 7})}.{payload}.{signature}",
        "a key in the header": signed(
            good, Ed25519PrivateKey.generate(), headers={"jwk": {"kty": "OKP", "crv": "Ed25519", "x": "AA"}}
        ),
        "another issuer": signed({**good, "iss": "other"}),
        "almost the issuer": signed({**good, "iss": "svc "}),
        "expired": signed({**good, "iat": now - 90, "exp": now - 30}),
        "just expired": signed({**good, "iat": now - 90, "exp": now - 1}),
        "not yet": signed({**good, "nbf": now + 60}),
        "of the future": signed({**good, "iat": now + 60}),
        **{f"without {name}": signed(without(name)) for name in good},
        "an audience": signed({**good, "aud": "elsewhere"}),
        "another user": signed({**good, "sub": "7f0a2b1c-0000-4000-8000-000000000001"}),
        "a sign-in of no form": signed({**good, "sid": "../x"}),
        "a sign-in that is no text": signed({**good, "sid": 7}),
        "a share": signed({**good, "sub": "share"}),
        "an unknown scope": signed({**good, "scope": "read"}),
        "a key of no one": signed({**good, "scope": "key:7f0a2b1c-0000-4000-8000-000000000001"}),
        "a path as a key": signed({**good, "scope": "key:../users"}),
        "an empty key": signed({**good, "scope": "key:"}),
        "text as exp": signed({**good, "exp": "soon"}),
        "nobody": signed({**good, "sub": ""}),
        "too long": signed({**good, "x": "y" * 8192}),
        "a changed payload": f"{header}.{part({**good, 'sub': 'share'})}.{signature}",
        "a changed signature": f"{header}.{payload}.{'A' * len(signature)}",
        "no signature": f"{header}.{payload}.",
        "four parts": f"{header}.{payload}.{signature}.x",
        "a list": f"{part(['EdDSA'])}.{payload}.{signature}",
        "nested": f"{part({'alg': 'EdDSA', 'kid': kid})}.{base64.urlsafe_b64encode(b'[' * 3000).decode()}.x",
    }


def test_nothing_that_was_not_made_here_is_taken(http: Http) -> None:
    bodies = set()
    for what, token in forged(http).items():
        answer = http("GET", "/system/whoami", token)
        assert answer.status_code == 401, what
        assert answer.json["code"] == "AUTH_REQUIRED", what
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        bodies.add(answer.text)
    assert len(bodies) == 1, "the answer does not say what is wrong"


def test_a_token_that_was_taken_ends_in_time(http: Http, clock: Clock) -> None:
    token = http.token(http.root_key)
    assert http.status(token) == 200
    clock.forward(3590)
    assert http.status(token) == 200
    clock.forward(11)
    assert http.status(token) == 401


def test_a_token_ends_no_later_than_its_key(http: Http, clock: Clock) -> None:
    key = http.make_key(expires_in_days=1)["key"]
    clock.forward(86_400 - 100)
    answer = http.sign_in(key)
    assert answer.json["expires_in"] <= 100
    clock.forward(101)
    assert http.status(answer.json["token"]) == 401
    assert http.sign_in(key).status_code == 401


def test_the_lifetime_of_tokens_is_a_setting(serve: Serve) -> None:
    http = serve(jwt_expiry=60)
    assert http.sign_in(http.root_key).json["expires_in"] == 60


def test_tokens_outlive_the_rotation_of_the_signing_key_until_they_expire(http: Http, clock: Clock) -> None:
    before = http.token(http.root_key)
    kid = jwt.get_unverified_header(before)["kid"]
    answer = http("POST", "/auth/signing-key", http.root)
    assert answer.status_code == 201
    after = http.token(http.root_key)
    assert jwt.get_unverified_header(after)["kid"] == answer.json["kid"] != kid
    assert http.status(before) == http.status(after) == 200
    stored = http.database.system()
    entry = stored.get(("signing-keys", kid))
    assert entry is not None
    assert b"private" not in stored.read_all(entry)


def test_a_retired_signing_key_is_removed_when_nothing_can_be_good_that_it_signed(
    http: Http, clock: Clock
) -> None:
    from svc_auth_self.signing import remove_ended

    kid = jwt.get_unverified_header(http.root)["kid"]
    rotate_now(http.database, 3600)
    assert remove_ended(http.database) == 0
    clock.forward(3500)
    assert remove_ended(http.database) == 0
    clock.forward(200)
    assert remove_ended(http.database) == 1
    assert http.database.system().get(("signing-keys", kid)) is None


def test_a_longer_lifetime_keeps_a_retired_key_for_longer(http: Http, clock: Clock) -> None:
    from svc_auth_self.signing import remove_ended

    SigningKeys(http.database).active(86_400)
    rotate_now(http.database, 3600)
    clock.forward(80_000)
    assert remove_ended(http.database) == 0
    clock.forward(10_000)
    assert remove_ended(http.database) == 1


def test_ending_all_tokens_leaves_refresh_tokens(http: Http) -> None:
    signed_in = http.sign_in(http.root_key).json
    assert http("POST", "/auth/signing-key", http.root, json={"end_tokens": True}).status_code == 201
    assert http.status(signed_in["token"]) == 401
    renewed = http.refresh(signed_in["refresh_token"])
    assert http.status(renewed.json["token"]) == 200


def test_only_root_makes_a_new_signing_key(http: Http) -> None:
    _, ann = http.make_caller("ann")
    scoped = http.token(http.make_key(rules=[{"/**": "crudlify"}])["key"])
    assert http("POST", "/auth/signing-key", ann).status_code == 403
    assert http("POST", "/auth/signing-key", scoped).status_code == 403
    assert http("POST", "/auth/signing-key").status_code == 401


def test_what_changes_a_caller_counts_with_the_next_request(http: Http) -> None:
    user_id, ann = http.make_caller("ann")
    assert http.whoami(ann)["groups"] == [f"user:{user_id}"]
    made = http("POST", "/system/groups", http.root, json={"name": "staff", "members": [user_id]})
    assert made.status_code == 201
    assert http.whoami(ann)["groups"] == ["staff", f"user:{user_id}"]
    assert http("PATCH", f"/system/users/{user_id}", http.root, json={"is_active": False}).status_code == 200
    assert http.status(ann) == 401
    assert http("PATCH", f"/system/users/{user_id}", http.root, json={"is_active": True}).status_code == 200
    assert http.status(ann) == 200


def test_a_commit_that_changes_nobody_keeps_what_was_judged(http: Http) -> None:
    mode = http.app.service.auth_mode
    credentials = Credentials(scheme="bearer", value=http.root)
    identity = mode.authenticate(credentials)
    with http.database.transaction() as transaction:
        transaction.put(("a",), b"a")
    http.sign_in(http.root_key)
    assert mode.authenticate(credentials) is identity
    http.make_user("ann")
    assert mode.authenticate(credentials) is not identity


def test_a_signature_is_checked_once_while_its_key_stays(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []

    def decode(token: str, *arguments: Any, **options: Any) -> Any:
        checked.append(token)
        return decoded(token, *arguments, **options)

    decoded = jwt.decode
    monkeypatch.setattr(jwt, "decode", decode)
    token = http.token(http.root_key)
    for name in ("ann", "ben", "cid"):
        assert http.status(token) == 200
        http.make_user(name)
    assert checked.count(token) == 1
    assert http("POST", "/auth/signing-key", token, json={"end_tokens": True}).status_code in (200, 201)
    assert http.status(token) == 401


def test_what_is_kept_of_tokens_is_bounded(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_auth_self.mode._MOST_KNOWN", 5)
    monkeypatch.setattr("svc_auth_self.tokens._MOST_CHECKED", 5)
    mode = http.app.service.auth_mode
    tokens = [mode.write_token(mode.match_key(http.root_key), 60 + n)[0] for n in range(20)]
    for token in tokens:
        assert http.status(token) == 200
    assert len(mode._known) <= 5
    assert len(mode._reader._checked) <= 5
