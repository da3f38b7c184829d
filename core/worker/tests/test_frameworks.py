"""Applications of others under ``gunicorn -k svc_worker.Worker``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
from corpus import CASES
from observing import observe
from wire import Client

pytest.importorskip("flask")

README = (Path(__file__).parents[1] / "README.md").read_text()
SAMPLES = [
    dedent(block) for block in re.findall(r"(?:^ {4}.*\n|^\n)+", README, re.MULTILINE) if "Hello" in block
]


@pytest.mark.parametrize("sample", SAMPLES, ids=["plain", "flask"])
def test_the_samples_of_the_readme_say_hello(sample: str, launch, tmp_path) -> None:
    (tmp_path / "hello.py").write_text(sample)
    with Client(launch(application="hello:app").address) as client:
        answer = client.ask("/")
        assert (answer.status, answer.body) == (200, b"Hello, world!\n")


@pytest.fixture
def flask(launch):
    return launch(application="flask_app:app")


def test_a_flask_application_is_served_as_by_any_server(flask) -> None:
    with Client(flask.address) as client:
        answer = client.ask("/hello/Ada")
        assert (answer.status, answer.body) == (200, b"Hello, Ada!")
        answer = client.ask("/numbers/1000")
        assert answer.get("transfer-encoding") == "chunked"
        assert answer.body.split() == [b"%d" % number for number in range(1000)]
        form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        form += bytes(300_000) + b"\r\n--b--\r\n"
        for body, framing in (
            (form, b"Content-Length: %d" % len(form)),
            (b"%x\r\n%b\r\n0\r\n\r\n" % (len(form), form), b"Transfer-Encoding: chunked"),
        ):
            client.send(
                b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                + framing
                + b"\r\n\r\n"
                + body
            )
            answer = client.answer()
            assert (answer.status, json.loads(answer.body)) == (200, {"bytes": 300_000})


def test_a_flask_application_passes_the_corpus(flask) -> None:
    for case in CASES:
        outcome = observe(case, flask.address, [case.data])
        assert (outcome.statuses, outcome.closes) == (case.statuses, case.closes), case.name
        for member, value in case.echo:
            assert outcome.answers[0].json[member] == value, case.name
