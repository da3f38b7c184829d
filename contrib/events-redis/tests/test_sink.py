"""The contract of event sinks, with a real Redis whose wire is cut; and a Redis that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import redis
from svc_events.testing import EventSinkContract, Receiver
from svc_events_redis.configuration import RedisConfiguration
from svc_events_redis.sink import RedisSink

from svc.plugin import Database
from svc.plugins import enable, load_plugins
from svc_testing import PluginContract, used_by

from .conftest import wire  # noqa: TID252


class TestPlugin(PluginContract):
    plugin_id = "events.redis"


class TestSink(EventSinkContract):
    plugin_id = "events.redis"
    destination = "stream"

    @pytest.fixture(autouse=True)
    def _port(self, redis_port: int) -> None:
        self.port = redis_port

    @pytest.fixture
    def extension(self) -> RedisSink:
        return RedisSink()

    @contextmanager
    def receiving(self, receiver: Receiver, database: Database) -> Iterator[None]:
        client: Any = redis.Redis(port=self.port)
        client.delete("svc:events")
        last = b"-"

        def passed() -> None:
            nonlocal last
            for entry_id, fields in client.xrange("svc:events", last, "+"):
                envelope = msgspec.json.decode(fields[b"event"])
                assert fields[b"event_id"].decode() == envelope["event_id"]
                receiver.taken.append((envelope["event_id"], envelope["event_type"]))
                last = b"(" + entry_id

        with wire(self.port, lambda: receiver.refuses(), passed) as port:  # noqa: PLW0108 - it is replaced
            plugins = load_plugins(used_by("events.redis"))
            enable(database, plugins, "events.redis", {"url": f"redis://127.0.0.1:{port}/0"})
            yield


def test_the_url_is_not_shown() -> None:
    assert "redis://" not in repr(RedisConfiguration())
