"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import PluginDescriptor
from svc_events_redis.configuration import RedisConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="events.redis",
    version="0.1.0",
    summary="Events in a Redis stream",
    api=(1, 1),
    configuration=RedisConfiguration,
    adds={
        "events:event_sinks": ("svc_events_redis.sink:RedisSink",),
    },
    needs=("events",),
)
