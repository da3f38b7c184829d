"""``/auth/token``, ``/auth/refresh`` and ``/auth/logout``; the limits of failed logins; the root key."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from svc.plugin import ROOT_USER_ID, AuthContext, Database
from svc.plugins import accepts_root_key
from svc_auth_self.jobs import prune_chains, prune_ended_chains
from svc_auth_self.keys import keys_of, verified_key
from svc_auth_self.limiter import RateLimiter
from svc_auth_self.mode import SelfContainedAuthMode
from svc_auth_self.refresh import chains_of
from svc_auth_self.root_key import ensure_root_key, reset_root_key
from svc_auth_self.signing import rotate

from .conftest import Clock, Http, Serve  # noqa: TID252


def wrong_keys(http: Http, clock: Clock) -> dict[str, str]:
    revoked = http.make_key()
    http("DELETE", f"/auth/keys/{revoked['key_id']}", http.root)
    expired = http.make_key(expires_in_days=1)["key"]
    idle = http.make_user("idle")
    of_idle = http.make_key(user_id=idle)["key"]
    http("PATCH", f"/system/users/{idle}", http.root, json={"is_active": False})
    clock.forward(86_401)
    key = http.root_key
    return {
        "revoked": revoked["key"],
        "expired": expired,
        "of an inactive user": of_idle,
        "unknown": "svc_k_" + "0" * 32 + "_" + "0" * 64,
        "another secret": key[:-1] + ("0" if key[-1] != "0" else "1"),
        "upper case": key.upper(),
        "empty": "",
        "a word": "hello",
        "a path": "svc_k_../users_" + "0" * 64,
        "another version": key.replace("svc_k_", "svc_q_"),
        "half": key[:50],
        "a token": http.root,
        "control characters": "svc_k_\x00\x01",
        "digits of another script": "svc_k_" + "\u0660" * 32 + "_" + "0" * 64,
        "very long": "svc_k_" + "0" * 10_000,
    }


def test_every_wrong_key_reads_the_same(serve: Serve, clock: Clock) -> None:
    http = serve(login_failures=100)
    bodies = set()
    for what, key in wrong_keys(http, clock).items():
        answer = http.sign_in(key)
        assert (answer.status_code, answer.json["code"]) == (401, "AUTH_REQUIRED"), what
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert not key or len(key) < 6 or key not in answer.text
        bodies.add(answer.text)
    assert len(bodies) == 1


def test_a_key_sent_as_a_token_is_told_to_be_exchanged_whether_or_not_it_is_good(http: Http) -> None:
    told = set()
    for key in (http.root_key, "svc_k_" + "0" * 32 + "_" + "0" * 64):
        answer = http("GET", "/auth/keys", key)
        assert (answer.status_code, answer.json["code"]) == (401, "AUTH_REQUIRED")
        assert key not in answer.text
        told.add(answer.text)
    assert len(told) == 1
    assert "POST /auth/token" in told.pop()


@pytest.mark.parametrize("body", [{}, {"api_key": 7}, {"api_key": None}, [], "x", {"api_key": "x", "y": 1}])
@pytest.mark.parametrize("path", ["/auth/token", "/auth/refresh", "/auth/logout"])
def test_what_is_no_body_is_refused(http: Http, path: str, body: Any) -> None:
    answer = http("POST", path, json=body)
    assert (answer.status_code, answer.json["code"]) == (400, "INVALID_INPUT")


def test_a_body_has_a_bound(http: Http) -> None:
    assert http("POST", "/auth/token", json={"api_key": "x" * 20_000}).status_code == 413


def test_a_sign_in_can_do_without_a_refresh_token(http: Http) -> None:
    answer = http("POST", "/auth/token", json={"api_key": http.root_key, "refresh": False})
    assert answer.status_code == 200
    assert answer.json["refresh_token"] is None


# -- refreshing --------------------------------------------------------------------------------------------


def test_a_refresh_token_is_good_once(http: Http) -> None:
    first = http.sign_in(http.root_key).json
    assert re.fullmatch(r"rt_[0-9a-f]{32}_0_[0-9a-f]{128}", first["refresh_token"])
    second = http.refresh(first["refresh_token"])
    assert second.status_code == 200
    assert list(second.json) == ["token", "expires_in", "refresh_token"]
    assert second.headers["Cache-Control"] == "no-store"
    assert http.status(second.json["token"]) == 200
    again = http.refresh(first["refresh_token"])
    assert (again.status_code, again.json["code"]) == (401, "AUTH_REQUIRED")
    third = http.refresh(second.json["refresh_token"])
    assert third.status_code == 200, "the harmless reuse ended nothing"


def test_a_spent_token_that_comes_back_late_ends_the_chain_and_the_log_says_so(
    http: Http, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    other = http.sign_in(http.root_key).json["refresh_token"]
    stolen = http.sign_in(http.root_key).json["refresh_token"]
    present = http.refresh(stolen).json["refresh_token"]
    clock.forward(31)
    with caplog.at_level(logging.WARNING):
        assert http.refresh(stolen).status_code == 401
    assert http.refresh(present).status_code == 401
    assert http.refresh(other).status_code == 200
    [line] = [record.getMessage() for record in caplog.records if "refresh" in record.getMessage()]
    assert "stolen" in line
    assert not any(part in line for part in (stolen[-64:], stolen[-128:-64], present[-64:]))


def test_how_late_is_a_setting(serve: Serve) -> None:
    http = serve(refresh_reuse_s=0)
    stolen = http.sign_in(http.root_key).json["refresh_token"]
    present = http.refresh(stolen).json["refresh_token"]
    assert http.refresh(stolen).status_code == 401
    assert http.refresh(present).status_code == 401


def test_who_knows_the_chain_alone_ends_nothing(http: Http, clock: Clock) -> None:
    token = http.sign_in(http.root_key).json["refresh_token"]
    for _ in range(3):
        token = http.refresh(token).json["refresh_token"]
    clock.forward(100)
    head, generation, secrets = token.rsplit("_", 2)
    for forged in (
        f"{head}_0_{'0' * 128}",
        f"{head}_{generation}_{'0' * 128}",
        f"{head}_{generation}_{secrets[:64]}{'0' * 64}",
        f"{head}_{generation}_{'0' * 64}{secrets[64:]}",
        f"{head}_9_{secrets}",
        f"{head}_00_{secrets}",
        f"{head}_-1_{secrets}",
        f"rt_{'0' * 32}_0_{secrets}",
        "rt_../../users_0_" + secrets,
        "",
        "rt_",
        "x" * 5_000,
    ):
        answer = http.refresh(forged)
        assert (answer.status_code, answer.json["code"]) == (401, "AUTH_REQUIRED")
    assert http.refresh(token).status_code == 200


def test_of_many_refreshes_of_one_token_one_wins_and_nobody_is_signed_out(http: Http) -> None:
    token = http.sign_in(http.root_key).json["refresh_token"]
    answers: list[Any] = []
    begin = threading.Barrier(32)

    def refresh() -> None:
        begin.wait()
        answers.append(http.refresh(token))

    threads = [threading.Thread(target=refresh) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(answer.status_code for answer in answers) == {200: 1, 401: 31}
    [won] = [answer.json for answer in answers if answer.status_code == 200]
    assert http.status(won["token"]) == 200
    assert http.refresh(won["refresh_token"]).status_code == 200


def test_refresh_tokens_end_with_their_key_and_their_user(http: Http) -> None:
    user_id = http.make_user("ann")
    key = http.make_key(user_id=user_id)
    one, two = (http.sign_in(key["key"]).json["refresh_token"] for _ in range(2))
    http("PATCH", f"/system/users/{user_id}", http.root, json={"is_active": False})
    assert http.refresh(one).status_code == 401
    http("PATCH", f"/system/users/{user_id}", http.root, json={"is_active": True})
    two = http.refresh(two).json["refresh_token"]
    http("DELETE", f"/auth/keys/{key['key_id']}", http.root)
    assert http.refresh(two).status_code == 401


def test_refresh_tokens_expire_and_are_removed(http: Http, clock: Clock) -> None:
    used, idle = (http.sign_in(http.root_key).json["refresh_token"] for _ in range(2))
    clock.forward(29 * 86_400)
    used = http.refresh(used).json["refresh_token"]
    clock.forward(2 * 86_400)
    assert http.refresh(idle).status_code == 401
    used = http.refresh(used).json["refresh_token"]
    before = len(list(chains_of(http.database.system(), ROOT_USER_ID)))
    assert prune_chains(http.database, None) is None
    assert len(list(chains_of(http.database.system(), ROOT_USER_ID))) == before - 2, "and the fixture's"
    assert http.refresh(used).status_code == 200


def test_logging_out_ends_the_tokens_of_the_sign_in_and_no_others(http: Http) -> None:
    first = http.sign_in(http.root_key).json
    second = http.refresh(first["refresh_token"]).json
    other = http.sign_in(http.root_key).json
    alone = http("POST", "/auth/token", json={"api_key": http.root_key, "refresh": False}).json
    assert [http.status(one["token"]) for one in (first, second, other, alone)] == [200] * 4
    token = second["refresh_token"]
    answer = http("POST", "/auth/logout", json={"refresh_token": token})
    assert (answer.status_code, answer.json) == (200, {"logged_out": True})
    assert [http.status(one["token"]) for one in (first, second, other, alone)] == [401, 401, 200, 200]
    assert http.refresh(token).status_code == 401
    assert http("POST", "/auth/logout", json={"refresh_token": token}).status_code == 401
    assert http.refresh(other["refresh_token"]).status_code == 200


def test_a_stolen_sign_in_ends_with_its_access_tokens(http: Http, clock: Clock) -> None:
    stolen = http.sign_in(http.root_key).json
    present = http.refresh(stolen["refresh_token"]).json
    clock.forward(31)
    assert [http.status(one["token"]) for one in (stolen, present)] == [200, 200]
    assert http.refresh(stolen["refresh_token"]).status_code == 401
    assert [http.status(one["token"]) for one in (stolen, present)] == [401, 401]


def test_what_was_ended_is_remembered_while_a_token_of_it_could_be_good(serve: Serve, clock: Clock) -> None:
    http = serve(jwt_expiry=7 * 86_400)
    signed_in = http.sign_in(http.root_key).json
    http("POST", "/auth/logout", json={"refresh_token": signed_in["refresh_token"]})
    clock.forward(7 * 86_400 - 60)
    assert prune_ended_chains(http.database, None) is None
    assert http.status(signed_in["token"]) == 401
    [_] = http.database.system().entries(("ended-sign-ins",))
    clock.forward(120)
    assert prune_ended_chains(http.database, None) is None
    assert list(http.database.system().entries(("ended-sign-ins",))) == []
    assert http.status(signed_in["token"]) == 401


def test_a_sign_in_of_which_nothing_is_known_here_is_not_ended(http: Http) -> None:
    """As on a node of a cluster that a token reaches before the record of its chain does."""
    signed_in = http.sign_in(http.root_key).json
    chain_id = signed_in["refresh_token"].split("_")[1]
    with http.database.transaction() as transaction:
        transaction.delete_system(("refresh-tokens", chain_id))
    assert http.status(signed_in["token"]) == 200


# -- rate limits -------------------------------------------------------------------------------------------


def test_wrong_keys_from_one_address_wait_and_keep_no_valid_key_out(serve: Serve, clock: Clock) -> None:
    http = serve(login_failures=3, login_window_s=60)
    for _ in range(3):
        assert http.sign_in("svc_k_x").status_code == 401
    refused = http.sign_in("svc_k_y")
    assert (refused.status_code, refused.json["code"]) == (429, "RATE_LIMITED")
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert refused.json["retry_after"] == int(refused.headers["Retry-After"])
    signed_in = http.sign_in(http.root_key)
    assert signed_in.status_code == 200
    assert http.refresh(signed_in.json["refresh_token"]).status_code == 200
    assert http.sign_in("svc_k_y", extras={"REMOTE_ADDR": "192.0.2.7"}).status_code == 401
    assert http.sign_in("svc_k_y").status_code == 429, "who has a key makes no room for guesses"
    clock.forward(61)
    assert http.sign_in("svc_k_y").status_code == 401


def test_a_key_that_is_exchanged_all_the_time_waits_and_no_other_does(serve: Serve, clock: Clock) -> None:
    http = serve(sign_ins_per_minute=4)
    other = http.make_key()["key"]
    clock.forward(30)
    answers = [
        http.sign_in(http.root_key, extras={"REMOTE_ADDR": f"192.0.2.{number}"}).status_code
        for number in range(4)
    ]
    assert answers == [200, 200, 200, 429], "the first one signed in when the test began"
    commits = http.database.head().sequence
    refused = http.sign_in(http.root_key)
    assert (refused.status_code, refused.json["code"]) == (429, "RATE_LIMITED")
    assert refused.json["retry_after"] == int(refused.headers["Retry-After"])
    assert 0 < int(refused.headers["Retry-After"]) <= 30
    assert http.database.head().sequence == commits
    assert http.sign_in(http.root_key[:-64] + "0" * 64).status_code == 401, "nobody learns of it by guessing"
    assert http.sign_in(other).status_code == 200
    clock.forward(31)
    assert http.sign_in(http.root_key).status_code == 200


def test_a_sign_in_that_is_refreshed_all_the_time_waits_and_is_not_lost(serve: Serve, clock: Clock) -> None:
    http = serve(sign_ins_per_minute=3)
    token = http.sign_in(http.root_key).json["refresh_token"]
    other = http.sign_in(http.root_key).json["refresh_token"]
    for _ in range(3):
        answer = http.refresh(token)
        assert answer.status_code == 200
        token = answer.json["refresh_token"]
    commits = http.database.head().sequence
    refused = http.refresh(token)
    assert (refused.status_code, refused.json["code"]) == (429, "RATE_LIMITED")
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert http.database.head().sequence == commits
    assert http.refresh(other).status_code == 200
    clock.forward(61)
    assert http.refresh(token).status_code == 200


def test_addresses_of_one_network_count_as_one_client(serve: Serve) -> None:
    http = serve(login_failures=2)
    for last in range(2):
        assert http.sign_in("x", extras={"REMOTE_ADDR": f"2001:db8::{last}"}).status_code == 401
    assert http.sign_in("x", extras={"REMOTE_ADDR": "2001:db8::9"}).status_code == 429
    assert http.sign_in("x", extras={"REMOTE_ADDR": "2001:db8:0:1::9"}).status_code == 401


def test_who_guesses_at_a_key_is_held_up_and_its_owner_is_not(serve: Serve) -> None:
    http = serve(login_failures=3)
    wrong = http.root_key[:-64] + "0" * 64
    statuses = [
        http.sign_in(wrong, extras={"REMOTE_ADDR": f"192.0.2.{number}"}).status_code for number in range(5)
    ]
    assert statuses == [401, 401, 401, 429, 429]
    assert http.sign_in(http.root_key, extras={"REMOTE_ADDR": "192.0.2.99"}).status_code == 200


def test_a_limiter_counts_within_a_window_that_moves(tmp_path: Any, clock: Clock) -> None:
    limiter = RateLimiter(tmp_path, "mails")
    assert limiter.hit("a", 2, 60) is None
    clock.forward(40)
    assert limiter.hit("a", 2, 60) is None
    wait = limiter.hit("a", 2, 60)
    assert wait is not None
    assert 15 < wait <= 20
    assert limiter.wait("a", 2, 60) is not None
    assert limiter.hit("b", 2, 60) is None
    assert RateLimiter(tmp_path, "other").hit("a", 2, 60) is None
    clock.forward(21)
    assert limiter.wait("a", 2, 60) is None
    assert limiter.hit("a", 2, 60) is None
    assert limiter.hit("a", 2, 60) is not None
    limiter.forget("a", 2, 60)
    assert limiter.hit("a", 2, 60) is None


def test_a_limiter_outlives_its_process_and_holds_no_names(tmp_path: Any) -> None:
    import gc

    RateLimiter(tmp_path, "mails").hit("ann@example.org", 1, 60)
    gc.collect()
    assert RateLimiter(tmp_path, "mails").hit("ann@example.org", 1, 60) is not None
    data = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"ann@" not in data


def test_a_limiter_that_is_full_makes_room(
    tmp_path: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_auth_self.limit_storage._MOST_KEYS", 100)
    limiter = RateLimiter(tmp_path, "mails")
    for number in range(100):
        assert limiter.hit(str(number), 1, 60) is None
    clock.forward(61)
    for number in range(100):
        assert limiter.hit(f"later {number}", 1, 60) is None
    assert [limiter.wait(f"later {number}", 1, 60) is None for number in range(100)] == [False] * 100
    limiter.hit("one more", 1, 60)
    kept = [number for number in range(100) if limiter.wait(f"later {number}", 1, 60) is not None]
    assert 40 <= len(kept) <= 60
    assert limiter.wait("one more", 1, 60) is not None


# -- the root key ------------------------------------------------------------------------------------------


def test_the_root_key_is_made_and_shown_once(http: Http) -> None:
    assert list(ensure_root_key(http.database)) == []
    assert list(SelfContainedAuthMode().prepare(AuthContext(http.database, "", None))) == []
    assert http.whoami(http.root)["is_root"]


def test_a_root_key_that_nobody_has_seen_is_not_kept(tmp_path: Path) -> None:
    with Database(tmp_path / "x.svcdb") as database:
        lines = ensure_root_key(database)
        assert next(lines).startswith("Root key: svc_k_")
        lines.close()  # as a crash between the two lines
        assert list(keys_of(database.system(), ROOT_USER_ID)) == []
        again = ensure_root_key(database)
        key = next(again).rpartition(" ")[2]
        assert [line.partition(":")[0] for line in again] == ["Keep it"]
        assert verified_key(database, key) is not None


def test_of_two_servers_that_make_the_root_key_at_once_the_later_says_that_its_own_is_void(
    tmp_path: Path,
) -> None:
    with Database(tmp_path / "x.svcdb") as database:
        late = ensure_root_key(database)
        key = next(late).rpartition(" ")[2]
        assert len(list(ensure_root_key(database))) == 2
        assert [line for line in late if "this one is not valid" in line]
        assert verified_key(database, key) is None


def test_a_new_root_key_ends_the_others_and_their_tokens(http: Http) -> None:
    _, ann = http.make_caller("ann")
    scoped = http.token(http.make_key(rules=[{"/**": "crudlify"}])["key"])
    refresh = http.sign_in(http.root_key).json["refresh_token"]
    text, revoked = reset_root_key(http.database)
    assert revoked == 2
    assert [http.status(token) for token in (http.root, scoped, ann)] == [401, 401, 200]
    assert http.refresh(refresh).status_code == 401
    assert http.sign_in(http.root_key).status_code == 401
    assert http.whoami(http.token(text))["is_root"]
    assert list(ensure_root_key(http.database)) == []
    assert list(chains_of(http.database.system(), ROOT_USER_ID)) != []


def test_commands_take_a_good_key_of_root_without_rules(http: Http, plugins: Any, clock: Clock) -> None:
    def accepted(key: str) -> bool:
        return accepts_root_key(http.database, plugins, key)

    user_id = http.make_user("ann")
    short = http.make_key(expires_in_days=1)["key"]
    assert accepted(http.root_key)
    assert accepted(short)
    assert not accepted(http.make_key(rules=[{"/**": "crudlify"}])["key"])
    assert not accepted(http.make_key(user_id=user_id)["key"])
    assert not accepted(http.root_key[:-1] + ("0" if http.root_key[-1] != "0" else "1"))
    assert not accepted("svc_k_" + "0" * 32 + "_" + "0" * 64)
    clock.forward(2 * 86_400)
    assert not accepted(short)


# -- other modes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/auth/token", '{"api_key": "x"}'),
        ("POST", "/auth/refresh", '{"refresh_token": "x"}'),
        ("POST", "/auth/logout", '{"refresh_token": "x"}'),
        ("POST", "/auth/keys", "{}"),
        ("GET", "/auth/keys", ""),
        ("DELETE", "/auth/keys/7f0a2b1c-0000-4000-8000-000000000001", ""),
        ("POST", "/auth/signing-key", "{}"),
    ],
)
def test_a_mode_without_keys_says_so(tmp_path: Any, method: str, path: str, body: str) -> None:
    from falcon.testing import TestClient

    from svc_testing import load_with_testing_auth, serve_in_process

    with serve_in_process(tmp_path / "x.svcdb", load_with_testing_auth("users", "auth.self")) as (app, _, _):
        answer = TestClient(app).simulate_request(
            method, path, body=body, headers={"Content-Type": "application/json"}
        )
    assert (answer.status_code, answer.json["code"]) == (409, "CONFLICT")
    assert "--auth testing" in answer.json["error"]


def test_whether_a_signing_key_is_old_is_found_out_without_the_library_that_makes_keys(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(tmp_path / "x.svcdb") as database:
        assert rotate(database, 60) is not None
        monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
        assert rotate(database, 60, older_than_ms=0) is None
