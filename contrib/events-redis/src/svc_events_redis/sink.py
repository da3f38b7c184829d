"""The sink: one destination, the stream of the settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import redis
from svc_events.api import DeliveryFailed, Destination, EventSink, FeedEvent

from svc.plugin import PluginContext
from svc_events_redis.configuration import RedisConfiguration

__all__ = ["RedisSink"]

_SECONDS = 10.0


class RedisSink(EventSink):
    """Appends events to a stream; those of a call together or none of them."""

    name = "redis"

    def __init__(self) -> None:
        self._clients: dict[str, redis.Redis] = {}

    def destinations(self, context: PluginContext) -> Iterable[Destination]:
        """The stream."""
        return [Destination(id="stream", path_prefix=_settings(context).path_prefix)]

    def deliver(self, destination: Destination, events: Sequence[FeedEvent], context: PluginContext) -> None:
        """Appends events; see ``EventSink``."""
        settings = _settings(context)
        try:
            with self._client(settings).pipeline(transaction=True) as pipeline:
                for found in events:
                    fields = {
                        "event_id": found.event.event_id,
                        "event_type": found.event.event_type,
                        "event": found.json,
                    }
                    pipeline.xadd(settings.stream, fields, maxlen=settings.maximum_length, approximate=True)
                pipeline.execute()
        except (redis.RedisError, OSError) as error:
            raise DeliveryFailed(f"Redis did not take it ({type(error).__name__}).") from error

    def _client(self, settings: RedisConfiguration) -> redis.Redis:
        url = settings.url.reveal()
        if url not in self._clients:
            self._clients = {
                url: redis.Redis.from_url(url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS)
            }
        return self._clients[url]


def _settings(context: PluginContext) -> RedisConfiguration:
    settings: RedisConfiguration = context.configuration or RedisConfiguration()
    return settings
