"""The hooks of the plugin: its task type, its commands and its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType
    from svc_portal.api import PortalPage, StateCard
    from svc_tasks.api import TaskType

    from svc.plugin import NamedRegistry

__all__ = [
    "svc_register_event_types",
    "svc_register_portal_pages",
    "svc_register_state_cards",
    "svc_register_task_types",
]


@hookimpl
def svc_register_task_types(task_types: NamedRegistry[TaskType]) -> None:
    """Adds the type ``gc``."""
    from svc_task_gc.task import GcTask

    task_types.add(GcTask())


@hookimpl
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds the events of collections."""
    from svc_task_gc.event_types import GcEvents

    event_types.add(GcEvents())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the page of collections."""
    from svc_task_gc.portal.collection import CollectionPage

    portal_pages.add(CollectionPage())


@hookimpl
def svc_register_state_cards(state_cards: NamedRegistry[StateCard]) -> None:
    """Adds what a collection would let go."""
    from svc_task_gc.portal.collection import CollectionCard

    state_cards.add(CollectionCard())
