"""The hooks of the plugin: its task type, its health check and its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_portal.api import PortalPage, StateCard
    from svc_tasks.api import TaskType

    from svc.plugin import HealthCheck, NamedRegistry

__all__ = [
    "svc_register_health_checks",
    "svc_register_portal_pages",
    "svc_register_state_cards",
    "svc_register_task_types",
]


@hookimpl
def svc_register_task_types(task_types: NamedRegistry[TaskType]) -> None:
    """Adds ``verify``."""
    from svc_task_verify.task import VerifyTask

    task_types.add(VerifyTask())


@hookimpl
def svc_register_health_checks(health_checks: NamedRegistry[HealthCheck]) -> None:
    """Adds ``verify``: degraded while what a task found is damaged."""
    from svc_task_verify.health import DamageCheck

    health_checks.add(DamageCheck())


@hookimpl
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds the page of verifications."""
    from svc_task_verify.portal.verification import VerificationPage

    portal_pages.add(VerificationPage())


@hookimpl
def svc_register_state_cards(state_cards: NamedRegistry[StateCard]) -> None:
    """Adds when the database was verified last, and whether it was whole."""
    from svc_task_verify.portal.verification import VerificationCard

    state_cards.add(VerificationCard())
