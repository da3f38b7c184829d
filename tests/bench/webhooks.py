"""Webhooks: events delivered to a receiver that answers at once, against a loop around urllib3."""

from __future__ import annotations

import subprocess
import sys
import time

import urllib3
from measurement import Bench
from svc_events.api import Event, FeedEvent, Place
from svc_events_webhook.configuration import WebhookConfiguration
from svc_events_webhook.deliveries import DeliveryLog
from svc_events_webhook.sending import Sender
from svc_events_webhook.signing import make_secret, parse_secret
from svc_events_webhook.sink import WebhookDestination, deliver_event

_RECEIVER = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    peer, _ = listening.accept()
    while said := peer.recv(65536):
        while b"payload" not in said:
            said += peer.recv(65536)
        peer.sendall(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
"""
_SETTINGS = WebhookConfiguration(allow_private=True, allow_any_port=True)


def deliveries(bench: Bench) -> None:
    """Events to one webhook, one after another: signed, noted, with the address judged each time."""
    count = bench.choose(2_000, 200)
    receiver = subprocess.Popen([sys.executable, "-c", _RECEIVER], stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    url = f"http://127.0.0.1:{int(receiver.stdout.readline())}/hook"
    ours, bare = [], []
    try:
        for _ in range(bench.rounds(5)):
            ours.append(_webhook(bench, url, count))
            bare.append(_loop(url, count))
    finally:
        receiver.kill()
        receiver.wait()
    bench.report.compare(
        "events to one webhook, one after another", ours, "1/s", "a loop around urllib3", bare
    )


def _event(number: int) -> FeedEvent:
    payload = {"entries": [{"path": f"/directory/{number}.txt"}]}
    return FeedEvent(
        Event(event_id=str(Place(number, 1)), event_type="entries_created", timestamp=1, payload=payload),
        "paths",
        (),
    )


def _webhook(bench: Bench, url: str, count: int) -> float:
    events = [_event(number) for number in range(1, count + 1)]
    keys = (parse_secret(make_secret()),)
    destination = WebhookDestination(id="one", url=url, format="envelope", user_id=None, keys=keys)
    sender, log = Sender(url, _SETTINGS), DeliveryLog(bench.directory, _SETTINGS)
    began = time.perf_counter()
    for event in events:
        answer, delivery = deliver_event(sender, destination, event, "urn:svc:bench")
        log.add("one", delivery, answer.body)
        assert answer.error is None, answer.error
    seconds = time.perf_counter() - began
    sender.close()
    log.close()
    return count / seconds


def _loop(url: str, count: int) -> float:
    bodies = [_event(number).json for number in range(1, count + 1)]
    began = time.perf_counter()
    with urllib3.PoolManager() as pool:
        for body in bodies:
            pool.request("POST", url, body=body, headers={"Content-Type": "application/json"})
        return count / (time.perf_counter() - began)
