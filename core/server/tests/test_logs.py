"""The log: one form for all, and never a secret in it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from svc.redaction import REDACTED, redact_text, redact_value
from svc_server.logs import configure_logs

SECRETS = [
    "svc_k_3f2a_c2VjcmV0LXNlY3JldA",
    "rt_0123456789abcdef",
    "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "form",
    ["{}", "Authorization: Bearer {}", "GET /events/me?a=1&token={}&b=2", "x {} y", "{{'token': '{}'}}"],
)
def test_a_secret_does_not_survive_in_any_place(secret: str, form: str) -> None:
    text = redact_text(form.format(secret))
    assert secret not in text
    assert secret[-8:] not in text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("?token=opaque123&b=2", "b=2"),
        ("?code=opaque123", "code="),
        ("Authorization: Basic dXNlcjpwYXNz", "Basic"),
    ],
)
def test_values_are_hidden_by_the_name_before_them(text: str, kept: str) -> None:
    redacted = redact_text(text)
    assert kept in redacted
    assert "opaque123" not in redacted
    assert "dXNlcjpwYXNz" not in redacted


def test_members_called_like_secrets_are_hidden_whole() -> None:
    event = {
        "password": "p",
        "headers": {"Authorization": "q", "Accept": "x"},
        "list": [{"refresh_token": "r"}],
    }
    assert redact_value(event) == {
        "password": REDACTED,
        "headers": {"Authorization": REDACTED, "Accept": "x"},
        "list": [{"refresh_token": REDACTED}],
    }


def test_ordinary_names_stay() -> None:
    text = "svc_register_storage_backends failed in /files/report.txt?limit=5"
    assert redact_text(text) == text


@pytest.fixture
def _restored_logs() -> object:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("_restored_logs")
@pytest.mark.parametrize("log_format", ["json", "pretty"])
def test_lines_and_tracebacks_are_redacted(capsys: pytest.CaptureFixture[str], log_format: str) -> None:
    configure_logs(log_format)
    fields = {"path": f"/a?token={SECRETS[1]}", "evil": "a\nb"}
    logging.getLogger("svc.x").info("ours", extra={"fields": fields})
    try:
        raise ValueError(f"failed with {SECRETS[0]}")
    except ValueError:
        logging.getLogger("gunicorn.error").exception("theirs: %s", SECRETS[2])
    written = capsys.readouterr().err
    assert "ours" in written
    assert "theirs" in written
    assert "ValueError" in written
    assert not [secret for secret in SECRETS if secret in written]
    if log_format == "json":
        lines = [json.loads(line) for line in written.splitlines()]
        assert [line["event"].split(":")[0] for line in lines] == ["ours", "theirs"]
    else:
        assert "evil='a\\nb'" in written


@pytest.mark.usefixtures("_restored_logs")
@pytest.mark.parametrize("log_format", ["json", "pretty"])
def test_what_is_to_be_shown_is_and_nothing_beside_it(
    capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    configure_logs(log_format)
    shown, hidden = "/verify?code=shown-on-purpose", "/verify?code=by-accident"
    extra = {"shown": {"link": shown}, "fields": {"path": hidden}}
    logging.getLogger("svc.x").info("a link, not %s", hidden, extra=extra)
    written = capsys.readouterr().err
    assert shown in written
    assert "by-accident" not in written


@pytest.mark.parametrize("log_format", ["pretty", "json"])
def test_the_line_of_a_request_has_the_form_of_all_others_and_no_secret(
    log_format: str, capfd: pytest.CaptureFixture[str]
) -> None:
    configure_logs(log_format)
    fields = {"method": "GET", "path": "/a b\n", "status": 200, "query": "?token=opaque123", "user": None}
    logging.getLogger("svc.other").info("something", extra={"fields": {"method": "GET", "path": "/a b\n"}})
    logging.getLogger("svc.access").info("request", extra={"fields": fields})
    other, request = capfd.readouterr().err.splitlines()
    assert "opaque123" not in request
    if log_format == "json":
        read = json.loads(request)
        assert (read["path"], read["status"], read["event"]) == ("/a b\n", 200, "request")
        assert list(read)[:4] == list(json.loads(other))[:4] == ["time", "level", "logger", "event"]
    else:
        assert "svc.access: request method=GET path='/a b\\n' status=200" in request
        assert "user" not in request
        assert len(other.split()[0]) == len(request.split()[0])


@pytest.mark.usefixtures("_restored_logs")
def test_times_are_utc_wherever_the_machine_stands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "IST-05:30")
    time.tzset()
    try:
        configure_logs("json")
        logging.getLogger("svc.x").info("now")
        (line,) = capsys.readouterr().err.splitlines()
    finally:
        monkeypatch.undo()
        time.tzset()
    written = json.loads(line)["time"]
    assert written.endswith("Z")
    assert abs(datetime.fromisoformat(written) - datetime.now(UTC)) < timedelta(hours=1)


_WRITERS = """
from gevent import monkey; monkey.patch_all()
import logging, random, sys
import gevent
from svc_server.logs import configure_logs

sys.setswitchinterval(1e-5)
configure_logs()
pool = gevent.get_hub().threadpool
written = 0

def write(name, lines):
    for line in range(lines):
        # A new logger is made, and asks for its level, under the lock of logging itself.
        logging.getLogger(f"{name}.{line}").warning("a line of %s", name)

for number in range(60):
    counts = [random.randrange(1, 30) for _ in range(6)]
    written += sum(counts)
    writers = [
        random.choice((pool.spawn, gevent.spawn))(write, f"writer-{number}-{place}", count)
        for place, count in enumerate(counts)
    ]
    assert len(gevent.wait(writers, timeout=60)) == len(writers), f"round {number}: one waits for ever"
print(written)
"""


def test_greenlets_and_native_threads_write_lines_at_once() -> None:
    """With locks of gevent one of them waited for ever, and with it whoever wrote the next line."""
    ended = subprocess.run(
        [sys.executable, "-c", _WRITERS], check=True, timeout=110, capture_output=True, text=True
    )
    assert ended.stderr.count("a line of writer-") == len(ended.stderr.splitlines()) == int(ended.stdout)
