"""The contract of operations, for those on webhooks; and what it does not reach."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from falcon.testing import TestClient
from svc_events_webhook import operations as op
from svc_events_webhook.models import (
    DeliveryQuery,
    NewWebhook,
    RetryBody,
    RotateBody,
    WebhookChange,
)
from svc_events_webhook.signing import make_secret
from svc_events_webhook.store import WEBHOOKS, secrets_of

from svc.errors import AlreadyExists, Conflict
from svc.plugin import Database, Identity
from svc_testing import OperationsContract, Teller, load_with_testing_auth, serve_in_process, used_by

URL = "https://example.org/hook"
ANN = Identity("7f0a2b1c-0000-4000-8000-00000000000a", "ann")


class TestOperations(OperationsContract):
    plugin_id = "events.webhook"

    def prepare(self, database: Database) -> None:
        """Stores a file with one webhook, as a person does."""
        with database.transaction() as changes:
            content = {"webhooks": [{"id": "of-file", "url": URL, "secret": make_secret()}]}
            changes.put(WEBHOOKS.path, json.dumps(content).encode())

    def story(self, call: Teller) -> None:
        made = call(op.add_webhook, NewWebhook(url=URL, id="one", events=["entries_created"]))
        assert made.secret.startswith("whsec_")
        call.refused(AlreadyExists, op.add_webhook, NewWebhook(url=URL, id="one"))
        call(op.add_webhook, NewWebhook(url=URL, enabled=False, id="resting"))
        assert [one.id for one in call(op.list_webhooks).webhooks] == ["of-file", "one", "resting"]
        assert call(op.show_webhook, "of-file").has_secret
        call(op.change_webhook, "one", WebhookChange(path_prefix="/d/", secret=make_secret()))
        assert call(op.rotate_secret, "of-file", RotateBody(hours=1)).old_secret_until is not None
        call(op.retry_webhook, "one", RetryBody("000000000001.000001"))
        call.refused(Conflict, op.retry_webhook, "resting")
        call(op.change_webhook, "one", WebhookChange(url="http://localhost/"))
        assert call(op.test_webhook, "one").error == "The name stands for a private address."
        call(op.list_deliveries, "one", DeliveryQuery(limit=10))
        call(op.remove_webhook, "one")


@pytest.fixture
def served(tmp_path: Any) -> Any:
    plugins = load_with_testing_auth(*used_by("events.webhook"))
    with serve_in_process(tmp_path / "x.svcdb", plugins) as (app, database, mode):
        yield TestClient(app), database, mode


def send(client: TestClient, method: str, path: str, value: Any = None) -> Any:
    body = None if value is None else json.dumps(value)
    headers = {} if value is None else {"Content-Type": "application/json"}
    return client.simulate_request(method, f"/system/webhooks{path}", body=body, headers=headers)


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"url": "http://127.0.0.1/"}, "url"),
        ({"url": "ftp://example.org/"}, "url"),
        ({"url": "https://example.org:8443/"}, "url"),
        ({"url": URL, "events": ["nothing"]}, "events"),
        ({"url": URL, "path_prefix": "d"}, "path_prefix"),
        ({"url": URL, "secret": "secret"}, "secret"),
        ({"url": URL, "id": "a/b"}, "id"),
        ({"url": URL, "id": ".."}, "id"),
        ({"url": URL, "format": "xml"}, "format"),
        ({"url": URL, "more": 1}, "more"),
    ],
)
def test_what_makes_no_sense_is_refused(served: Any, members: Any, field: str) -> None:
    client, _, _ = served
    answer = send(client, "POST", "", members)
    assert answer.status_code == 400
    assert field in (answer.json.get("field") or answer.json["error"])


def test_no_answer_but_the_first_holds_a_secret(served: Any, caplog: pytest.LogCaptureFixture) -> None:
    client, database, _ = served
    secret = send(client, "POST", "", {"url": URL, "id": "one"}).json["secret"]
    given = make_secret()
    send(client, "POST", "", {"url": URL, "id": "two", "secret": given})
    rotated = send(client, "POST", "/one/rotate", {}).json["secret"]
    answers = [send(client, "GET", path) for path in ("", "/one", "/two", "/one/deliveries")]
    answers += [send(client, "PATCH", "/one", {"enabled": False}), send(client, "DELETE", "/two")]
    text = "".join(answer.text for answer in answers) + caplog.text
    text += WEBHOOKS.read(database.at()).decode()
    for known in (secret, given, rotated):
        assert known not in text


def test_users_have_none_unless_the_settings_say_so(served: Any) -> None:
    client, _, mode = served
    send(client, "POST", "", {"url": URL, "id": "of-root"})
    mode.identity = ANN
    for method, path in (("GET", ""), ("GET", "/of-root"), ("DELETE", "/of-root"), ("POST", "/of-root/test")):
        assert send(client, method, path).status_code == 403
    assert send(client, "POST", "", {"url": URL}).status_code == 403
    mode.identity = None
    assert send(client, "GET", "").status_code == 401


def test_a_user_sees_and_changes_the_users_own_alone(served: Any) -> None:
    from svc.plugins import enable

    client, database, mode = served
    send(client, "POST", "", {"url": URL, "id": "of-root"})
    plugins = load_with_testing_auth(*used_by("events.webhook"))
    enable(database, plugins, "events.webhook", {"allow_users": True, "maximum_per_user": 2})
    mode.identity = ANN
    made = send(client, "POST", "", {"url": URL, "id": "of-ann"}).json["webhook"]
    assert made["user_id"] == ANN.user_id
    assert send(client, "POST", "", {"url": URL, "user_id": "root"}).status_code == 403
    assert [one["id"] for one in send(client, "GET", "").json["webhooks"]] == ["of-ann"]
    for method, path in (("GET", "/of-root"), ("DELETE", "/of-root"), ("POST", "/of-root/rotate")):
        assert send(client, method, path).status_code == 404
    assert send(client, "POST", "", {"url": URL}).status_code == 201
    assert send(client, "POST", "", {"url": URL}).status_code == 409


def test_a_database_has_so_many_at_most(served: Any) -> None:
    from svc.plugins import enable

    client, database, _ = served
    enable(
        database,
        load_with_testing_auth(*used_by("events.webhook")),
        "events.webhook",
        {"maximum_webhooks": 2},
    )
    codes = [send(client, "POST", "", {"url": URL}).status_code for _ in range(3)]
    assert codes == [201, 201, 409]


@pytest.mark.parametrize(
    "content",
    [b"{", b'{"webhooks": [{"id": "a"}]}', b'{"webhooks": [{"id": "a", "url": "http://127.0.0.1/"}]}'],
)
def test_a_file_that_is_not_valid_is_refused_and_the_old_one_stays(served: Any, content: bytes) -> None:
    from svc.errors import InvalidInput

    _, database, _ = served
    good = json.dumps({"webhooks": [{"id": "a", "url": URL}]}).encode()
    with database.transaction() as changes:
        changes.put(WEBHOOKS.path, good)
    with pytest.raises(InvalidInput), database.transaction() as changes:
        changes.put(WEBHOOKS.path, content)
    assert WEBHOOKS.read(database.at()) == good


def test_what_the_settings_would_not_let_in_any_more_can_be_removed(served: Any) -> None:
    from svc.plugins import enable

    client, database, _ = served
    plugins = load_with_testing_auth(*used_by("events.webhook"))
    enable(database, plugins, "events.webhook", {"allow_private": True})
    for number in range(4):
        assert send(client, "POST", "", {"url": "http://127.0.0.1/", "id": str(number)}).status_code == 201
    enable(database, plugins, "events.webhook", {"allow_private": False, "maximum_webhooks": 2})
    assert send(client, "PATCH", "/0", {"enabled": False}).status_code == 200
    assert send(client, "PATCH", "/1", {"path_prefix": "/d/"}).status_code == 400
    assert send(client, "PATCH", "/1", {"url": URL}).status_code == 200
    assert send(client, "POST", "/2/rotate", {}).status_code == 200
    for number in range(4):
        assert send(client, "DELETE", f"/{number}").status_code == 200


def test_of_rotations_at_once_the_answered_secrets_count(served: Any) -> None:
    client, database, _ = served
    send(client, "POST", "", {"url": URL, "id": "one"})
    together = threading.Barrier(4)
    answers: list[Any] = []

    def rotate() -> None:
        together.wait()
        answers.append(send(client, "POST", "/one/rotate", {}))

    threads = [threading.Thread(target=rotate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    given = [answer.json["secret"] for answer in answers if answer.status_code == 200]
    record = secrets_of(WEBHOOKS.stored(database.at())[0], database.system())
    assert record is not None
    assert {record.secret, record.old_secret} <= set(given)


def test_an_event_that_is_not_there_yet_is_no_place(served: Any) -> None:
    client, _, _ = served
    send(client, "POST", "", {"url": URL, "id": "one"})
    assert send(client, "POST", "/one/retry", {"since": "999999999999.000001"}).status_code == 400
