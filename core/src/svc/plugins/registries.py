"""One registry for each family, together: what the registration hooks fill and the kernel reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from svc.plugins.contracts import (
    AuthMode,
    EventSink,
    EventType,
    HealthCheck,
    IndexType,
    Parser,
    QueryOperator,
    SyncTransport,
    TaskType,
)
from svc.plugins.registry import CommandRegistry, NamedRegistry, Registry, RouteCheck, RouteRegistry

if TYPE_CHECKING:
    from svc.database import View
    from svc.log import StorageBackend

__all__ = ["Registries", "make_registries"]


@dataclass(frozen=True, slots=True)
class Registries:
    """The registries of all families."""

    routes: RouteRegistry = field(default_factory=RouteRegistry)
    commands: CommandRegistry = field(default_factory=CommandRegistry)
    auth_modes: NamedRegistry[AuthMode] = field(
        default_factory=lambda: NamedRegistry("auth mode", AuthMode, lambda mode: (mode.name, *mode.aliases))
    )
    views: NamedRegistry[View] = field(default_factory=lambda: NamedRegistry("view", _problem_with_view))
    index_types: NamedRegistry[IndexType] = field(
        default_factory=lambda: NamedRegistry("index type", IndexType)
    )
    query_operators: NamedRegistry[QueryOperator] = field(
        default_factory=lambda: NamedRegistry("query operator", QueryOperator)
    )
    task_types: NamedRegistry[TaskType] = field(default_factory=lambda: NamedRegistry("task type", TaskType))
    sync_transports: NamedRegistry[SyncTransport] = field(
        default_factory=lambda: NamedRegistry(
            "sync transport", SyncTransport, lambda transport: transport.schemes
        )
    )
    event_sinks: NamedRegistry[EventSink] = field(
        default_factory=lambda: NamedRegistry("event sink", EventSink)
    )
    event_types: NamedRegistry[EventType] = field(
        default_factory=lambda: NamedRegistry("event type", EventType)
    )
    storage_backends: NamedRegistry[StorageBackend] = field(
        default_factory=lambda: NamedRegistry(
            "storage backend", _problem_with_storage_backend, lambda backend: (backend.scheme,)
        )
    )
    parsers: NamedRegistry[Parser] = field(default_factory=lambda: NamedRegistry("parser", Parser))
    health_checks: NamedRegistry[HealthCheck] = field(
        default_factory=lambda: NamedRegistry("health check", HealthCheck)
    )

    def __iter__(self) -> Iterator[Registry[Any]]:
        return (getattr(self, item.name) for item in fields(self))

    def named(self) -> dict[str, Registry[Any]]:
        """The registries by the name of their hook's argument: ``routes``, ``auth_modes``, ..."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @contextmanager
    def adding(self, plugin_id: str) -> Iterator[None]:
        """Within this, what is added belongs to a plugin; if it raises, nothing of the plugin stays."""
        for registry in self:
            registry.begin(plugin_id)
        try:
            yield
        except BaseException:
            self.withdraw(plugin_id)
            raise
        finally:
            for registry in self:
                registry.end()

    def withdraw(self, plugin_id: str) -> None:
        """Takes out everything that a plugin added, in every family."""
        for registry in self:
            registry.withdraw(plugin_id)

    def freeze(self) -> None:
        """Ends the boot of every family."""
        for registry in self:
            registry.freeze()


def make_registries(check_route: RouteCheck | None = None) -> Registries:
    """Returns empty, open registries.

    Args:
        check_route: see ``RouteRegistry``.
    """
    return Registries(routes=RouteRegistry(check_route))


def _problem_with_view(thing: object) -> str | None:
    if isinstance(thing, type):
        return "it is a class, and an instance is needed"
    if not isinstance(getattr(thing, "name", None), str):
        return "it has no name"
    if not isinstance(getattr(thing, "format", None), int):
        return "it has no format number"
    return None if callable(getattr(thing, "apply", None)) else "it has no method apply"


def _problem_with_storage_backend(thing: object) -> str | None:
    if isinstance(thing, type):
        return "it is a class, and an instance is needed"
    if not isinstance(getattr(thing, "scheme", None), str):
        return "it has no scheme"
    return None if callable(getattr(thing, "open", None)) else "it has no method open"
