"""The credentials of a request stay out of log, findings and answers, however a plugin tells them."""

from __future__ import annotations

import base64
import http.client
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from svc.redaction import REDACTED, enter_request, leave_request, redact_text
from svc_testing import DistributionFactory

TOKEN = 'Zx9/quiet+harbor="42\\k'
CANARIES = ("quiet", "harbor", "Zx9")

PLUGIN = r"""
import base64, json, logging, threading, time
from urllib.parse import quote
import msgspec
from svc.database import run_blocking
from svc.errors import InvalidInput
from svc.pipeline import public, read_json, requires_identity, send_json, send_stream
from svc.plugins import HealthCheck, HealthReport, HealthStatus, PluginDescriptor, hookimpl

class Settings(msgspec.Struct):
    word: str = ""

PLUGIN = PluginDescriptor("test.leak", "1.0", "For tests", (1, 1), "svc_test_leak", Settings)
log = logging.getLogger("leak")
seen = []

def chained(token):
    try:
        raise KeyError(token)
    except KeyError as error:
        raise RuntimeError("outer") from error

def noted(token):
    error = RuntimeError("see the note")
    error.add_note(f"used {token}")
    raise error

def message(token):
    raise RuntimeError(f"could not use {token}.")

def arguments(token):
    raise RuntimeError({"given": token}, [token.encode()])

def refused(token):
    raise InvalidInput(f"No {token} here.", field=token)

def lines(token):
    log.info("given %s and %r", token, {"x": token})
    log.warning(f"{token=}", extra={"more": token})
    log.info("event", extra={"fields": {"value": token, "nested": {"a": [token]}, token: 1}})

def encoded(token):
    for offset in range(3):
        log.info("as %s", base64.b64encode(b"x" * offset + b"Bearer " + token.encode() + b"yz").decode())
    log.info("as %s", base64.urlsafe_b64encode(token.encode()).decode())
    log.info("as %s %s %s", quote(token, safe=""), quote(token).lower(), json.dumps({"t": json.dumps(token)}))
    log.info("as %s %s %s", repr(token.encode()), token.encode().hex(), repr(repr(token)))

def threads(token):
    run_blocking(log.info, "in a thread %s", token)
    other = threading.Thread(target=log.info, args=("beside %s", token))
    other.start()
    other.join()

def truncated(token):
    raise RuntimeError("x" * 290 + token)

WAYS = dict(chained=chained, noted=noted, message=message, arguments=arguments, refused=refused,
            lines=lines, encoded=encoded, threads=threads, truncated=truncated)

class Leak:
    @requires_identity
    def on_get(self, req, resp, way):
        token = req.get_header("Authorization").partition(" ")[2]
        seen.append(token)
        if way == "headers":
            raise RuntimeError(f"failed with {req.headers!r} and {req.env!r}")
        if way == "stream":
            def pieces():
                yield b"x" * 100000
                raise RuntimeError(f"late {token}")
            return send_stream(resp, pieces(), None, content_type="text/plain")
        if way == "parts":
            log.info("%s %s", req.get_param("token"), req.cookies.get("session"))
            raise RuntimeError(req.get_header("X-Api-Key"))
        WAYS[way](token)
        send_json(resp, {})

class Exchange:
    @public
    def on_post(self, req, resp):
        body = read_json(req, dict)
        raise RuntimeError(f"the key {body['api_key']} and {body['more']['password']}")

class Check(HealthCheck):
    name = "leaking"
    def check(self, context):
        if seen and len(seen) % 2:
            raise RuntimeError(f"the check knows {seen[-1]}")
        return HealthReport(HealthStatus.DEGRADED, f"It knows {seen[-1]}.") if seen else HealthReport()

@hookimpl
def svc_start(context):
    if context.configuration.word:
        raise RuntimeError(f"started with {seen[-1:]}")

@hookimpl
def svc_register_routes(routes):
    routes.add("/leak/{way}", Leak())
    routes.add("/exchange", Exchange())

@hookimpl
def svc_register_health_checks(health_checks):
    health_checks.add(Check())
"""


@pytest.fixture
def environment(environment: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    factory = DistributionFactory(tmp_path / "site", in_process=False)
    factory.install(
        "svc-test-leak",
        modules={"svc_test_leak": PLUGIN},
        entry_points={"test.leak": "svc_test_leak:PLUGIN"},
    )
    variables = factory.environment(environment)
    yield {**variables, "SVC_PLUGINS": f"{environment['SVC_PLUGINS']},test.leak"}
    factory.close()


class Client:
    def __init__(self, server: Any) -> None:
        self._server = server
        self.said = b""

    def __call__(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Sends a request with the token; keeps all that the server says."""
        connection = http.client.HTTPConnection(self._server.host, self._server.port, timeout=20)
        given = {"Authorization": f"Bearer {TOKEN}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, None if body is None else json.dumps(body), given)
        answer = connection.getresponse()
        try:
            content = answer.read()
        except (http.client.IncompleteRead, ConnectionResetError):
            content = b""
        self.said += str(answer.getheaders()).encode() + content
        connection.close()
        return answer.status, content


@pytest.fixture(params=["pretty", "json"])
def server(request: pytest.FixtureRequest, start: Callable[..., Any]) -> Any:
    return start("--access-log", "true", "--log-format", request.param)


@pytest.fixture
def client(server: Any) -> Client:
    return Client(server)


def test_no_way_of_telling_it_gets_into_the_log_or_an_answer(
    server: Any, client: Client, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    quiet = ("lines", "encoded", "threads", "stream")
    for way in ("chained", "noted", "message", "arguments", "headers", "truncated", *quiet):
        assert client(f"/leak/{way}")[0] == (200 if way in quiet else 500), way
    assert client("/leak/refused")[0] == 400
    assert client(f"/leak/message?token={quote(TOKEN, safe='')}&other=1")[0] == 500
    cookie = f"theme=dark; session={quote(TOKEN, safe='')}"
    assert client("/leak/parts?token=quiet-harbor-1", Cookie=cookie, X_Api_Key="quiet-harbor-2")[0] == 500
    assert client("/exchange", "POST", {"api_key": TOKEN, "more": {"password": "a-quiet-word"}})[0] == 500
    for _ in range(2):
        client("/system/health")
        client("/leak/lines")
    told = client("/system/plugins/test.leak/configuration", "PUT", {"word": "x"})
    assert told[0] == 200, told
    client("/leak/lines")
    time.sleep(1.5)  # the process publishes what is wrong about once a second
    shown = run("status", "--json")
    assert "started with" in shown.stdout
    written = server.log.read_text() + shown.stdout + shown.stderr
    assert written.count("Traceback") + written.count("exception") >= 10
    assert REDACTED in written
    found = [word for word in CANARIES if word in written or word in client.said.decode("latin-1")]
    assert found == [], [line for line in written.splitlines() if any(word in line for word in found)]
    for offset in range(3):
        encoded = base64.b64encode(b"x" * offset + TOKEN.encode()).decode()
        assert encoded[4:20] not in written
    assert TOKEN.encode().hex()[:12] not in written


def test_a_request_id_that_is_the_token_is_not_taken(server: Any, client: Client) -> None:
    token = "Zx9-quiet-harbor"
    client("/leak/lines", Authorization=f"Bearer {token}", X_Request_Id=token)
    client("/leak/lines", X_Request_Id="of-the-client")
    assert b"quiet" not in client.said
    assert b"of-the-client" in client.said
    assert "quiet" not in server.log.read_text()


@pytest.fixture
def inside() -> Iterator[Callable[..., None]]:
    yield lambda **environ: enter_request(environ)
    leave_request()


def test_short_words_are_left_alone(inside: Callable[..., None]) -> None:
    inside(HTTP_AUTHORIZATION="Bearer root", QUERY_STRING="key=abc")
    assert redact_text("root put abc") == "root put abc"


def test_the_password_of_basic_credentials_is_hidden_by_itself(inside: Callable[..., None]) -> None:
    credentials = base64.b64encode(b"ann:open the door").decode()
    inside(HTTP_AUTHORIZATION=f"Basic {credentials}")
    assert redact_text(f"ann says open the door, {credentials}") == f"ann says {REDACTED}, {REDACTED}"


def test_parts_of_a_signature_are_hidden_by_themselves(inside: Callable[..., None]) -> None:
    inside(HTTP_AUTHORIZATION="Digest username=ann, response=0123456789abcdef01, uri=/x")
    assert redact_text("response 0123456789abcdef01") == f"response {REDACTED}"


def test_outside_of_a_request_what_was_sent_lately_is_still_hidden(inside: Callable[..., None]) -> None:
    inside(HTTP_AUTHORIZATION="Opaque long-ago-and-far")
    leave_request()
    assert redact_text("it said long-ago-and-far") == f"it said {REDACTED}"
    for number in range(1000):
        enter_request({"HTTP_AUTHORIZATION": f"Opaque number-{number:08}"})
    leave_request()
    assert redact_text("number-00000999") == REDACTED
    assert re.fullmatch(r"number-\d+", redact_text("number-00000001"))


def test_what_has_no_text_is_told_all_the_same() -> None:
    from svc.findings import describe_error

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe_error(Mute()) == "Mute: a Mute that has no text"
