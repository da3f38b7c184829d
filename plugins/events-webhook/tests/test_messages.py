"""What is sent, as others read it: the public packages of Standard Webhooks and of CloudEvents."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError
from svc_events.api import Event, FeedEvent
from svc_events_webhook.messages import make_message
from svc_events_webhook.signing import make_secret, parse_secret, signature_fields

from svc.errors import InvalidInput

EVENT = Event(
    event_id="000000000042.000001",
    event_type="entries_created",
    timestamp=1_790_000_000_123,
    payload={"entries": [{"path": "/ä.txt"}]},
)


def test_a_receiver_of_standard_webhooks_believes_it() -> None:
    secret, other = make_secret(), make_secret()
    body = make_message(FeedEvent(EVENT, "paths", ()), "envelope", "urn:x").body
    fields = signature_fields([parse_secret(secret)], EVENT.event_id, int(time.time()), body)
    assert Webhook(secret).verify(body, fields)["payload"] == EVENT.payload
    with pytest.raises(WebhookVerificationError):
        Webhook(other).verify(body, fields)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body + b" ", fields)


def test_during_a_rotation_both_secrets_are_good() -> None:
    new, old = make_secret(), make_secret()
    keys = [parse_secret(new), parse_secret(old)]
    fields = signature_fields(keys, "id", int(time.time()), b"{}")
    for secret in (new, old):
        Webhook(secret).verify(b"{}", fields)
    assert fields["X-Svc-Signature"] == "sha256=" + hmac.new(keys[0], b"{}", hashlib.sha256).hexdigest()


def test_without_a_secret_nothing_is_signed() -> None:
    assert signature_fields([], "id", 1, b"") == {"webhook-id": "id", "webhook-timestamp": "1"}


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "abc", "whsec_!!!!", "whsec_" + base64.b64encode(b"short").decode(), "whsec_" + "A" * 200],
)
def test_what_is_no_secret_is_refused(secret: str) -> None:
    with pytest.raises(InvalidInput, match="whsec_"):
        parse_secret(secret)


@pytest.mark.parametrize("form", ["cloudevents", "cloudevents-binary"])
@given(st.dictionaries(st.sampled_from(["path", "kind"]), st.text(max_size=20)))
def test_a_reader_of_cloudevents_reads_it(form: str, payload: dict[str, str]) -> None:
    import msgspec

    event = msgspec.structs.replace(EVENT, payload=payload)
    message = make_message(FeedEvent(event, "root", ()), form, "urn:svc:00ff")  # type: ignore[arg-type]
    read = from_http_event(HTTPMessage(headers=message.fields, body=message.body))
    assert read.get_id() == EVENT.event_id
    assert read.get_type() == "svc.entries_created"
    assert read.get_source() == "urn:svc:00ff"
    assert read.get_specversion() == "1.0"
    assert read.get_subject() == (payload.get("path") or None)
    assert int(read.get_time().timestamp() * 1000) == EVENT.timestamp
    assert read.get_data() == payload
