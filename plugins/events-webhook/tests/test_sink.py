"""The sink: what a webhook gets, whose eyes it sees with, and what becomes of one whose receiver is gone."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from standardwebhooks import Webhook as Verifier
from svc_events.api import EVENT_SINKS, destination_states, name_node
from svc_events.testing import EventSinkContract
from svc_events.testing import Receiver as Taken
from svc_events.testing.sinks import running_sinks, wait_for
from svc_events_webhook.signing import make_secret
from svc_events_webhook.sink import SINK, WebhookHealth, WebhookSink
from svc_events_webhook.store import WEBHOOKS, SecretRecord, Webhook, put_secret

from svc.plugin import Database, HealthStatus
from svc.plugins import enable, load_plugins
from svc_cli import extensions_of
from svc_testing import used_by
from svc_users.api import checked_grant, grants_at, own_group, put_grant, remove_grant
from svc_users.users import create_user

from .conftest import LOCAL, Receiver, receiving, reply  # noqa: TID252


def allow_local(database: Database) -> None:
    enable(database, load_plugins(used_by("events.webhook")), "events.webhook", LOCAL)
    # The checks of the fixture have the settings of before.
    database.use_content_checks([])


def add(database: Database, url: str, webhook_id: str = "one", **members: Any) -> None:
    members.setdefault("secret", make_secret())
    WEBHOOKS.add(database, Webhook(id=webhook_id, url=url, **members), actor=None)


def put(database: Database, *paths: str) -> None:
    for path in paths:
        with database.transaction() as changes:
            changes.put(tuple(path.strip("/").split("/")), b"x")


def grant(database: Database, path: str, user_id: str) -> None:
    given = checked_grant((path,), own_group(user_id), allow="-r------", created_at=1)
    with database.transaction() as changes:
        put_grant(changes, database.system(), given)


def begun(database: Database, *webhooks: str) -> None:
    wait_for(lambda: set(webhooks) <= set(destination_states(database, SINK)), "the webhooks are taken up")


def paths(receiver: Receiver) -> list[str]:
    return [
        entry["path"]
        for request in receiver.requests
        for entry in json.loads(request.body)["payload"].get("entries", ())
    ]


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    return used_by("events.webhook")


@pytest.fixture
def work(database: Database) -> Database:
    """The database, whose webhooks may go to the receivers of these tests."""
    allow_local(database)
    return database


class TestSink(EventSinkContract):
    plugin_id = "events.webhook"

    @pytest.fixture
    def extension(self) -> WebhookSink:
        return WebhookSink()

    @contextmanager
    def receiving(self, receiver: Taken, database: Database) -> Iterator[None]:
        allow_local(database)
        with receiving() as server:

            def answer(handler: Any) -> None:
                envelope = json.loads(server.requests[-1].body)
                is_taken = receiver.take(envelope["event_id"], envelope["event_type"])
                reply(handler, 204 if is_taken else 503)

            server.answer = answer
            add(database, server.url, self.destination)
            yield


def test_requests_are_signed_with_the_secrets_of_now(work: Database, receiver: Receiver) -> None:
    new, old = make_secret(), make_secret()
    add(work, receiver.url, secret=old)
    with running_sinks(work):
        begun(work, "one")
        put(work, "/a")
        wait_for(lambda: receiver.requests, "it has arrived")
        with work.transaction() as changes:
            put_secret(changes, "one", SecretRecord(secret=new, old_secret=old, old_until_ms=1 << 50))
        numbers = itertools.count()
        wait_for(
            lambda: (
                put(work, f"/{next(numbers)}") or " " in receiver.requests[-1].headers["webhook-signature"]
            ),
            "both sign",
        )
    first, last = receiver.requests[0], receiver.requests[-1]
    Verifier(old).verify(first.body, first.headers)
    for secret in (new, old):
        Verifier(secret).verify(last.body, last.headers)


def test_a_webhook_sees_with_the_eyes_of_its_user(work: Database, receiver: Receiver) -> None:
    user = create_user(work, "ann")
    add(work, receiver.url, user_id=user.user_id)
    grant(work, "shown", user.user_id)
    with running_sinks(work):
        begun(work, "one")
        put(work, "/hidden/a", "/shown/a")
        wait_for(lambda: paths(receiver) == ["/shown/a"], "what is shown has arrived")
        grant(work, "hidden", user.user_id)
        put(work, "/hidden/b", "/shown/b")
        wait_for(lambda: paths(receiver)[-1] == "/shown/b", "all has arrived")
    assert paths(receiver) == ["/shown/a", "/hidden/b", "/shown/b"]


def test_a_webhook_of_nobody_gets_nothing(work: Database, receiver: Receiver) -> None:
    add(work, receiver.url, user_id="7f0a2b1c-0000-4000-8000-000000000001")
    add(work, receiver.url.replace("/hook", "/all"), "all")
    with running_sinks(work):
        begun(work, "one", "all")
        put(work, "/a")
        wait_for(lambda: receiver.requests, "the other has it")
    assert {request.path for request in receiver.requests} == {"/all?a=b"}


def test_one_that_is_gone_is_disabled(work: Database, receiver: Receiver) -> None:
    receiver.answer = lambda handler: reply(handler, 410)
    add(work, receiver.url)
    with running_sinks(work):
        begun(work, "one")
        put(work, "/a")
        wait_for(lambda: not WEBHOOKS.stored(work.at())[0].enabled, "it is disabled")
        put(work, "/b")
        wait_for(lambda: not destination_states(work, SINK), "it is let go")
    assert len(receiver.requests) == 1


def test_only_what_it_asks_for_in_the_format_that_it_asks_for(work: Database, receiver: Receiver) -> None:
    add(
        *(work, receiver.url),
        events=["entries_deleted"],
        path_prefix="/d/",
        format="cloudevents",
    )
    with running_sinks(work):
        begun(work, "one")
        put(work, "/d/a", "/a")
        with work.transaction() as changes:
            changes.delete(("a",))
            changes.delete(("d", "a"))
        wait_for(lambda: receiver.requests, "it has arrived")
    (request,) = receiver.requests
    assert request.headers["content-type"] == "application/cloudevents+json"
    message = json.loads(request.body)
    assert message["type"] == "svc.entries_deleted"
    assert {"path": "/d/a"} in message["data"]["entries"]


def test_another_url_counts_at_once(work: Database, receiver: Receiver) -> None:
    add(work, "http://127.0.0.1:1/")
    with running_sinks(work):
        begun(work, "one")
        put(work, "/a")
        wait_for(lambda: destination_states(work, SINK)["one"].failures > 0, "it fails")
        WEBHOOKS.replace(
            work,
            "one",
            lambda old, _: msgspec.structs.replace(old, url=receiver.url),
            actor=None,
        )
        wait_for(lambda: paths(receiver)[:1] == ["/a"], "it has arrived")


def test_of_a_cluster_the_node_that_is_named_delivers(database: Database, receiver: Receiver) -> None:
    settings = {**LOCAL, "node_id": 7}
    enable(database, load_plugins(used_by("events.webhook")), "events.webhook", settings)
    database.use_content_checks([])
    add(database, receiver.url)
    name_node(database, lambda _: 5)
    with running_sinks(database):
        extension = extensions_of(database, "events", EVENT_SINKS)["webhooks"]
        assert extension.value.destinations(extension.context) == []
        put(database, "/a")
        assert destination_states(database, SINK) == {}
        name_node(database, lambda _: 7)
        begun(database, "one")
        put(database, "/b")
        wait_for(lambda: paths(receiver) != [], "it has arrived")
    assert paths(receiver) == ["/b"]


def test_one_that_cannot_be_used_stops_no_other_and_is_told(work: Database, receiver: Receiver) -> None:
    """As an import brings them, which checks nothing."""
    good = {"id": "good", "url": receiver.url, "secret": make_secret()}
    bad = [
        {**good, "id": "no-secret", "secret": "nope"},
        {**good, "id": "none", "secret": None},
        {**good, "id": "no-url", "url": "ftp://example.org/"},
    ]
    with work.transaction() as changes:
        changes.put(WEBHOOKS.path, json.dumps({"webhooks": [*bad, good]}).encode())
    with running_sinks(work):
        begun(work, "good")
        put(work, "/a")
        wait_for(lambda: paths(receiver) == ["/a"], "the good one has it")
    context: Any = extensions_of(work, "events", EVENT_SINKS)["webhooks"].context
    report = WebhookHealth().check(context)
    assert report.status is HealthStatus.DEGRADED
    assert len(report.details["webhooks"]) == 3
    with work.transaction() as changes:
        changes.put(WEBHOOKS.path, b"[" * 3_000_000)
    assert WebhookHealth().check(context).status is HealthStatus.DEGRADED


def test_after_a_restore_nothing_is_sent_unsigned(work: Database, receiver: Receiver) -> None:
    """The file came back; the secret, which was in the system tree, did not."""
    add(work, receiver.url, secret=None)
    with running_sinks(work):
        put(work, "/a")
        time.sleep(0.3)
    assert receiver.requests == []


def test_a_receiver_that_is_gone_disables_no_other_url(work: Database, receiver: Receiver) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def gone_later(handler: Any) -> None:
        entered.set()
        go_on.wait(60)
        reply(handler, 410)

    receiver.answer = gone_later
    add(work, receiver.url)
    with running_sinks(work), receiving() as other:
        begun(work, "one")
        put(work, "/a")
        assert entered.wait(60)
        WEBHOOKS.replace(work, "one", lambda old, _: msgspec.structs.replace(old, url=other.url), actor=None)
        go_on.set()
        wait_for(lambda: "/a" in paths(other), "the new one has it")
    assert WEBHOOKS.stored(work.at())[0].enabled


def test_what_is_revoked_counts_within_a_batch(work: Database, receiver: Receiver) -> None:
    user = create_user(work, "ann")
    grant(work, "shown", user.user_id)
    add(work, receiver.url, user_id=user.user_id)
    with running_sinks(work):
        begun(work, "one")
    put(work, *(f"/shown/{number}" for number in range(20)))

    def slowly(handler: Any) -> None:
        if len(receiver.requests) == 3:
            (found,) = grants_at(work.system(), ("shown",))
            with work.transaction() as changes:
                remove_grant(changes, found)
        reply(handler, 204)

    receiver.answer = slowly
    with running_sinks(work):
        begun(work, "one")
        wait_for(lambda: destination_states(work, SINK)["one"].commits_behind == 0, "all was looked at")
    assert len(receiver.requests) == 3
