"""Health checks: what a plugin knows about whether it works.

``GET /system/health`` asks them all and answers ``degraded`` when one is; the route is public, so a message
names nothing that a stranger should not read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct, field

if TYPE_CHECKING:
    from svc.plugins.context import PluginContext

__all__ = ["HealthCheck", "HealthReport", "HealthStatus"]


class HealthStatus(Enum):
    """How something is."""

    STARTING = "starting"
    HEALTHY = "healthy"
    DEGRADED = "degraded"


class HealthReport(Struct, frozen=True):
    """What a check found.

    Attributes:
        status: how it is.
        message: one sentence when it is not healthy; public.
        details: more about it, by name, for root's eyes: ``/system/findings`` and ``svc status`` show it.
    """

    status: HealthStatus = HealthStatus.HEALTHY
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


class HealthCheck(ABC):
    """One check.

    Attributes:
        name: what the answer calls it.
    """

    name: ClassVar[str]

    @abstractmethod
    def check(self, context: PluginContext) -> HealthReport:
        """Looks, in a greenlet or thread beside the request: returns within milliseconds and does not block.

        One that does not return within a second counts as degraded, and is not asked again before it has.

        An exception counts as degraded, and its text goes to the log only.
        """
