"""Every error has one form, whatever raised it."""

from __future__ import annotations

import errno
import inspect
import logging

import falcon
import pytest
from falcon.testing import TestClient, create_environ

import svc.errors
from svc.errors import RateLimited, SvcError
from svc.pipeline import Application, encode_json
from svc.pipeline.serialization import answer_for

KINDS = [kind for _, kind in inspect.getmembers(svc.errors, inspect.isclass) if issubclass(kind, SvcError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_error_of_svc_is_answered_as_its_class_says(kind: type[SvcError]) -> None:
    answer = answer_for(kind("What happened.", path="/a"))
    assert answer.status == kind.status
    own = kind("What happened.").details  # what says the same of every error of the class
    assert answer.body == {"error": "What happened.", "code": kind.code, "path": "/a", **own}
    assert ("Retry-After" in answer.headers) == (kind.status in (429, 503))
    assert ("WWW-Authenticate" in answer.headers) == (kind.status == 401)


def test_retry_after_is_in_whole_seconds() -> None:
    assert answer_for(RateLimited("Slow down.", retry_after=2.6)).headers["Retry-After"] == "3"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (falcon.HTTPRouteNotFound(), 404, "NOT_FOUND"),
        (falcon.HTTPMethodNotAllowed(["GET"]), 405, "METHOD_NOT_ALLOWED"),
        (falcon.HTTPUnsupportedMediaType(), 415, "UNSUPPORTED_MEDIA_TYPE"),
        (falcon.HTTPUnauthorized(), 401, "AUTH_REQUIRED"),
        (falcon.HTTPTooManyRequests(), 429, "RATE_LIMITED"),
        (falcon.HTTPError(418), 418, "INVALID_INPUT"),
        (falcon.HTTPBadGateway(), 502, "INTERNAL_ERROR"),
        (OSError(errno.ENOSPC, "x"), 507, "INSUFFICIENT_STORAGE"),
        (ValueError("inner"), 500, "INTERNAL_ERROR"),
    ],
)
def test_foreign_errors_take_the_same_form(error: Exception, status: int, code: str) -> None:
    answer = answer_for(error)
    assert (answer.status, answer.body["code"]) == (status, code)
    assert answer.body["error"].endswith(".")
    assert "inner" not in answer.body["error"]


def test_a_failure_of_ours_is_500_with_its_traceback_in_the_log_only(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answer = client.simulate_get("/things/boom", headers={"X-Request-Id": "call-7"})
    assert answer.status_code == 500
    assert answer.json["code"] == "INTERNAL_ERROR"
    assert "stays in the log" not in answer.text
    (record,) = [one for one in caplog.records if one.name == "svc.errors" or one.exc_info]
    assert record.fields["plugin"] == "test.routes"  # type: ignore[attr-defined]
    assert answer.headers["x-request-id"] == "call-7"


def test_a_request_that_meets_a_database_being_closed_is_told_to_ask_again(
    app: Application, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.simulate_get("/things/closing", extras={"test.close": app.service.close})
    assert (answer.status_code, answer.json["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert answer.headers["retry-after"] == "1"
    assert "request failed" not in caplog.text
    assert app.service.is_closed


def test_an_error_takes_back_what_the_responder_had_set(client: TestClient) -> None:
    answer = client.simulate_get("/things/conflict")
    assert answer.status_code == 409
    assert answer.json == {"error": "It does not fit.", "code": "CONFLICT", "path": "/conflict"}
    assert "etag" not in answer.headers


def test_a_stream_that_fails_before_its_first_piece_is_an_ordinary_error(client: TestClient) -> None:
    answer = client.simulate_get("/things/early")
    assert answer.status_code == 409
    assert answer.json["error"] == "The stream broke."
    assert answer.headers["content-length"] == str(len(answer.content))


def test_a_stream_that_fails_later_cuts_the_connection(app: Application) -> None:
    environ = create_environ("/things/late", headers={"Authorization": "Bearer root"})
    body = iter(app(environ, lambda *_: lambda _: None))
    assert next(body) == b"piece"
    with pytest.raises(ConnectionResetError):
        next(body)
    body.close()  # type: ignore[attr-defined]


def test_a_text_that_is_no_unicode_does_not_break_the_answer() -> None:
    assert encode_json({"error": "\udc80"}) == b'{"error": "\\udc80"}'


def test_a_head_has_the_headers_of_the_error_and_no_body(client: TestClient) -> None:
    answer = client.simulate_head("/things/conflict")
    assert (answer.status_code, answer.content) == (409, b"")


@pytest.mark.parametrize(
    ("token", "path", "status"), [("root", "/own/x", 409), ("wrong", "/x", 401), ("scoped", "/x", 404)]
)
def test_a_route_may_show_its_errors_as_a_page_to_those_who_ask_for_html(
    anonymous: TestClient, token: str, path: str, status: int
) -> None:
    fields = {"Authorization": f"Bearer {token}", "Accept": "text/html,*/*;q=0.8"}
    page = anonymous.simulate_get(f"/pages{path}", headers=fields)
    assert (page.status_code, page.text) == (status, f"<h1>Sorry, {status}</h1>")
    assert page.headers["Content-Type"].startswith("text/html")
    assert page.headers["Cache-Control"] == "no-store"
    assert "Accept" in page.headers["Vary"]
    assert ("WWW-Authenticate" in page.headers) == (status == 401)
    told = anonymous.simulate_get(f"/pages{path}", headers={**fields, "Accept": "*/*"})
    assert (told.status_code, set(told.json) >= {"error", "code"}) == (status, True)
