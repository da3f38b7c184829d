"""Asking for a link, and using the code in it, over HTTP."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from svc.plugin import Database
from svc_auth_magic_link.asking import ANSWER, MOST_REQUESTS, WINDOW_SECONDS
from svc_auth_magic_link.codes import create_code
from svc_auth_magic_link.mail import MailRefused
from svc_auth_self import limiter

MAILED = {"base_url": "https://svc.example/", "smtp_host": "mail.example", "smtp_from": "svc@svc.example"}
ANN = "ann@example.com"
ANN_ID = "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a90"


def codes_of(database: Database) -> list[str]:
    system = database.system()
    if system.get(("magic-links",)) is None:
        return []
    return [name for name, _ in system.entries(("magic-links",))]


# -- asking -------------------------------------------------------------------------------------------------


def test_a_link_that_is_mailed_signs_in(served) -> None:
    asked = served.ask(ANN)
    assert (asked.status_code, asked.json) == (200, {"message": ANSWER})
    address, message = served.mails.next()
    assert (address, message["To"], message["From"]) == (ANN, ANN, "svc@svc.example")
    (link,) = [line for line in message.get_content().splitlines() if line.startswith("https:")]
    base, _, code = link.partition("?code=")
    assert base == "https://svc.example/auth/magic-link/verify"
    verified = served.verify(code)
    assert verified.status_code == 200
    assert sorted(verified.json) == ["expires_in", "token"]
    assert verified.json["expires_in"] == 3600
    me = served.whoami(verified.json["token"]).json
    assert (me["user_id"], me["name"], me["key_id"]) == (ANN_ID, ANN, None)


@pytest.mark.parametrize(
    "email", ["nobody@example.com", "root", "Ann", "x", "ann@example.com\n.evil", "é" * 300]
)
def test_the_answer_is_the_same_for_everybody(served, email: str) -> None:
    known, unknown = served.ask(ANN), served.ask(email)
    assert unknown.status_code == known.status_code == 200
    assert unknown.content == known.content
    varying = {"x-request-id", "date"}
    assert {name: value for name, value in unknown.headers.items() if name not in varying} == {
        name: value for name, value in known.headers.items() if name not in varying
    }


def test_a_link_goes_to_active_users_alone_and_to_the_name_that_they_have(served, put_user) -> None:
    put_user(served.database, "Zoë@Example.com", "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a91")
    put_user(served.database, "gone@example.com", "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a92", is_active=False)
    put_user(served.database, "kim", "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a93")
    for email in ("nobody@example.com", "gone@example.com", "kim", "", " zoe\u0308@EXAMPLE.com "):
        served.ask(email)
    assert served.mails.next()[0] == "Zoë@Example.com"
    served.ask(ANN)
    assert served.mails.next()[0] == ANN
    assert len(served.mails.attempts) == 2
    assert len(codes_of(served.database)) == 2, "no code was made for anybody else"


def test_another_letter_that_is_the_same_by_case_brings_no_mail_to_another_mailbox(served, put_user) -> None:
    put_user(served.database, "kim@example.com", "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a94")
    served.ask("\u212aim@example.com")  # KELVIN SIGN, which case folds to k
    assert served.mails.next()[0] == "kim@example.com"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b'{"email": 1}',
        b'{"email": null}',
        b'{"email": "a", "x": 1}',
        b"x",
        b'{"email": ""}',
    ],
)
def test_a_body_of_another_form_is_400(served, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = served.client.simulate_post("/auth/magic-link", body=body, headers=headers)
    assert (answer.status_code, answer.json["code"]) == (400, "INVALID_INPUT")


def test_a_long_address_is_400_and_a_long_body_413(served) -> None:
    assert served.ask("a" * 321).status_code == 400
    assert served.ask("a" * 20_000).status_code == 413


def test_other_methods_are_405(served) -> None:
    assert served.client.simulate_get("/auth/magic-link").status_code == 405
    assert served.client.simulate_post("/auth/magic-link/verify").status_code == 405


# -- how often ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("email", [ANN, "nobody@example.com"])
def test_the_sixth_request_for_an_address_is_429_whoever_has_it(served, email: str) -> None:
    spellings = [email, email.upper(), f" {email} ", email.title(), email]
    assert [served.ask(one).status_code for one in spellings] == [200] * MOST_REQUESTS
    refused = served.ask(email)
    assert (refused.status_code, refused.json["code"]) == (429, "RATE_LIMITED")
    assert 0 < int(refused.headers["Retry-After"]) <= WINDOW_SECONDS
    assert served.ask("other@example.com").status_code == 200


def test_the_count_outlives_the_process(served) -> None:
    for _ in range(MOST_REQUESTS):
        served.ask(ANN)
    limiter._limiters.clear()
    assert served.ask(ANN).status_code == 429


def test_requests_are_counted_where_nothing_is_sent_too(served) -> None:
    served.configure({})
    assert [served.ask(ANN).status_code for _ in range(6)] == [200] * 5 + [429]
    assert codes_of(served.database) == []


# -- the code -----------------------------------------------------------------------------------------------


def test_a_code_is_good_once(served) -> None:
    served.ask(ANN)
    code = served.code()
    assert served.verify(code).status_code == 200
    again = served.verify(code)
    assert (again.status_code, again.json["code"]) == (401, "AUTH_REQUIRED")
    assert again.json["error"] == served.verify("A" * 43).json["error"], "nobody learns that it was good once"
    assert codes_of(served.database) == []


def test_of_many_who_use_a_code_at_once_one_is_signed_in(served) -> None:
    served.ask(ANN)
    code = served.code()
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: served.verify(code).status_code, range(32)))
    assert sorted(answers) == [200] + [401] * 31


def test_who_signs_in_by_a_link_and_who_does_not_is_written(served, caplog, monkeypatch) -> None:
    # Other tests of this minute have used up what is written of one address.
    monkeypatch.setattr("svc.pipeline.address_log.MOST_LINES", 1_000_000)
    caplog.set_level(logging.INFO, "svc.plugin.auth.self.sign-in")
    code = create_code(served.database, ANN_ID, ANN)
    served.verify(code)
    served.verify(code)
    good, wrong = [record.fields for record in caplog.records if record.name.endswith("sign-in")]
    assert (good["how"], good["user_id"], good["key_id"]) == ("link", ANN_ID, None)
    assert (wrong["how"], wrong["reason"], wrong["user_id"]) == ("link", "the code is not good", None)
    assert code not in caplog.text + str(good) + str(wrong)


def test_a_code_expires(served) -> None:
    now_ms = time.time_ns() // 1_000_000
    fresh = create_code(served.database, ANN_ID, ANN, now_ms - 14 * 60_000)
    stale = create_code(served.database, ANN_ID, ANN, now_ms - 16 * 60_000)
    assert served.verify(stale).status_code == 401
    assert served.verify(fresh).status_code == 200


def test_a_user_who_was_deactivated_meanwhile_is_not_signed_in(served, put_user) -> None:
    code = create_code(served.database, ANN_ID, ANN)
    put_user(served.database, ANN, is_active=False)
    assert served.verify(code).status_code == 401
    stranger = create_code(served.database, "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a9f", ANN)
    assert served.verify(stranger).status_code == 401


def test_a_link_that_went_to_an_earlier_address_signs_nobody_in(served, put_user) -> None:
    served.ask(ANN)
    code = served.code()
    put_user(served.database, "ann@new.example")
    assert served.verify(code).status_code == 401
    served.ask("ann@new.example")
    new = served.code()
    put_user(served.database, "Ann@new.example")
    assert served.verify(new).status_code == 401, "another spelling may be another mailbox"
    put_user(served.database, ANN)
    assert served.verify(code).status_code == 401, "it is used up"


def test_a_code_of_which_nobody_knows_where_it_went_signs_nobody_in(served) -> None:
    code = create_code(served.database, ANN_ID, ANN)
    (name,) = codes_of(served.database)
    record = f'{{"user_id": "{ANN_ID}", "created_at": 1, "expires_at": {2**52}}}'.encode()
    with served.database.transaction() as transaction:
        transaction.put_system(("magic-links", name), record)
    assert served.verify(code).status_code == 401


def test_the_token_ends_when_the_user_is_deactivated(served, put_user) -> None:
    token = served.verify(create_code(served.database, ANN_ID, ANN)).json["token"]
    assert served.whoami(token).status_code == 200
    put_user(served.database, ANN, is_active=False)
    assert served.whoami(token).status_code == 401


@pytest.mark.parametrize(
    "code", ["x", "A" * 42, "A" * 44, "A" * 5000, "../../users", "%00", "é" * 43, "A" * 42 + "/"]
)
def test_what_is_no_code_is_401(served, code: str) -> None:
    assert served.verify(code).status_code == 401


@pytest.mark.parametrize("code", [None, ""])
def test_no_code_is_400(served, code: str | None) -> None:
    answer = served.verify(code)
    assert (answer.status_code, answer.json["field"]) == (400, "code")


def test_the_answers_to_a_code_are_kept_by_nobody(served) -> None:
    code = create_code(served.database, ANN_ID, ANN)
    good = served.verify(code)
    assert good.headers["Cache-Control"] == "no-store"
    assert good.headers["Referrer-Policy"] == "no-referrer"
    assert served.verify(code).headers["Cache-Control"] == "no-store"


def test_the_database_holds_no_code(served) -> None:
    code = create_code(served.database, ANN_ID, ANN)
    (name,) = codes_of(served.database)
    system = served.database.system()
    record = system.read_all(system.get(("magic-links", name)))
    assert code not in name
    assert code.encode() not in record


# -- scanners and browsers ----------------------------------------------------------------------------------


def test_head_leaves_the_code_alone(served) -> None:
    code = create_code(served.database, ANN_ID, ANN)
    answer = served.verify(code, "HEAD")
    assert (answer.status_code, answer.content) == (200, b"")
    assert served.verify("A" * 43, "HEAD").status_code == 200, "it says nothing of the code"
    assert served.verify(code).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Purpose": "prefetch;prerender"},
        {"Purpose": "prefetch"},
        {"X-Moz": "prefetch"},
        {"X-Purpose": "preview"},
    ],
)
def test_fetching_ahead_leaves_the_code_alone(served, headers: dict[str, str]) -> None:
    code = create_code(served.database, ANN_ID, ANN)
    assert served.verify(code, headers=headers).status_code == 400
    assert served.verify(code).status_code == 200


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_a_browser_is_asked_first(served) -> None:
    code = create_code(served.database, ANN_ID, ANN)
    for _ in range(2):
        page = served.verify(code, headers=BROWSER)
        assert page.status_code == 200
        assert page.headers["Content-Type"].startswith("text/html")
        assert f'value="{code}"' in page.text
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["Cache-Control"] == "no-store"
    confirmed = served.verify(code, headers=BROWSER, params={"confirm": "true"})
    assert confirmed.status_code == 200
    assert confirmed.json["token"]


def test_the_page_repeats_nothing_that_is_no_code(served) -> None:
    answer = served.verify('"><script>alert(1)</script>', headers=BROWSER)
    assert answer.status_code == 401
    assert "<script>" not in answer.text


# -- other ways ---------------------------------------------------------------------------------------------


def test_links_go_to_the_log_where_that_is_asked_for(served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    served.configure({"log_links": True, "smtp_host": "mail.example", "smtp_from": "a@b"})
    served.ask(ANN)
    deadline = time.monotonic() + 30
    while not (shown := [record for record in caplog.records if hasattr(record, "shown")]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    link = shown[0].shown["link"]
    assert link.startswith("/auth/magic-link/verify?code="), "relative, without a base URL"
    assert served.verify(link.rpartition("=")[2]).status_code == 200
    assert served.mails.attempts == []


def test_the_link_never_depends_on_the_request(served) -> None:
    headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    served.ask(ANN, **headers)
    assert "evil" not in served.mails.next()[1].as_string()


def test_the_link_may_lead_to_an_application(served) -> None:
    served.configure({**MAILED, "url_template": "https://app.example/enter#code={code}"})
    served.ask(ANN)
    assert "https://app.example/enter#code=" in served.mails.next()[1].get_content()


def test_in_a_mode_without_tokens_there_is_nothing_to_sign_in_to(disabled_app) -> None:
    for answer in (
        disabled_app.simulate_post("/auth/magic-link", json={"email": ANN}),
        disabled_app.simulate_get("/auth/magic-link/verify", params={"code": "A" * 43}),
    ):
        assert (answer.status_code, answer.json["code"]) == (409, "CONFLICT")


# -- health -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({}, "healthy"),
        ({"smtp_host": "mail.example"}, "degraded"),
        ({"smtp_host": "mail.example", "smtp_from": "a@b"}, "degraded"),
        ({"smtp_host": "mail.example", "log_links": True}, "healthy"),
        ({**MAILED, "smtp_ca": "/nonexistent"}, "degraded"),
        ({**MAILED, "smtp_ca": "/nonexistent", "log_links": True}, "healthy"),
        ({"smtp_host": "mail.example", "smtp_from": "a@b", "base_url": "https://x"}, "healthy"),
    ],
)
def test_health_says_when_mail_is_half_set(served, settings: dict[str, object], status: str) -> None:
    served.configure(settings)
    assert served.client.simulate_get("/system/health").json["checks"]["magic-link"]["status"] == status


def test_health_says_nothing_of_mails_that_fail(served) -> None:
    served.mails.failures = [MailRefused("the mail server answered 550: no")]
    served.ask(ANN)
    deadline = time.monotonic() + 30
    while served.mails.failures or codes_of(served.database):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert served.client.simulate_get("/system/health").json["status"] == "healthy"
