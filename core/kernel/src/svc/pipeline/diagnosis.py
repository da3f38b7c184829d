"""What one process finds wrong with the service that it gives: database, plugins, auth mode, checks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from svc.errors import DatabaseClosed, ServiceUnavailable
from svc.executor import current_executor
from svc.findings import Finding, describe_failure
from svc.plugins import HealthReport, HealthStatus, plugin_findings
from svc.plugins.steps import hanging_steps, plugin_step
from svc.redaction import redact_text

if TYPE_CHECKING:
    from svc.pipeline.service import LiveService
    from svc.plugins import HealthCheck, PluginContext
    from svc.plugins.registry import Registered

__all__ = ["CheckAnswer", "CheckRun", "FailureMemory", "auth_failure", "live_findings"]

REMEMBERED_SECONDS = 60.0
_CHECK_SECONDS = 1.0

_log = logging.getLogger("svc.health")


class CheckAnswer(Struct, frozen=True):
    """What a health check says; its report is fit for strangers.

    ``error`` is what it raised, as a sentence for whoever runs the server; else empty.
    """

    name: str
    plugin_id: str
    report: HealthReport
    error: str = ""

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong."""
        return self.report.status is HealthStatus.HEALTHY

    def finding(self) -> Finding:
        """The finding for one that is not healthy."""
        if self.error:
            message = f"A health check of the plugin {self.plugin_id!r} fails."
            detail = f"{self.name}: {self.error}"
            return Finding("check.failed", self.plugin_id, message, subject=self.name, detail=detail)
        code = f"check.{self.report.status.value}"
        message = self.report.message or f"The plugin {self.plugin_id!r} says that it is not healthy."
        detail = "; ".join(f"{name}: {value}" for name, value in self.report.details.items())
        return Finding(code, self.plugin_id, message, subject=self.name, detail=redact_text(detail))


class FailureMemory:
    """The last failure of something that many requests use. It counts for a minute."""

    def __init__(self) -> None:
        self._finding: Finding | None = None
        self._until = 0.0

    def note(self, finding: Finding) -> None:
        """Remembers a failure."""
        self._finding, self._until = finding, time.monotonic() + REMEMBERED_SECONDS

    def findings(self) -> Iterator[Finding]:
        """Yields the failure while it counts."""
        if self._finding is not None and time.monotonic() < self._until:
            yield self._finding


def live_findings(live: LiveService, answers: list[CheckAnswer]) -> Iterator[Finding]:
    """Yields what is wrong with a live service; costs a fraction of a millisecond."""
    yield from live.database.findings()
    yield from _auth_findings(live)
    yield from plugin_findings(live.plugins, live.database)
    yield from live.active.findings()
    yield from hanging_steps()
    yield from (answer.finding() for answer in answers if not answer.is_healthy)


class CheckRun:
    """Asks the health checks of all plugins in use; one that hangs keeps nobody, and is not asked again."""

    def __init__(self) -> None:
        self._under_way: dict[str, Callable[[float], HealthReport]] = {}

    def answers(self, live: LiveService) -> list[CheckAnswer]:
        """Returns what they say within a second."""
        asked = []
        begin = current_executor().begin_beside
        for item in live.plugins.registries.health_checks:
            context = live.plugin_context(item.plugin_id)
            if context is not None:
                if item.name not in self._under_way:
                    self._under_way[item.name] = begin(partial(_ask, item, context))
                # Other requests may wait for the same answer, and the first to have it forgets it.
                asked.append((item.name, item.plugin_id, self._under_way[item.name]))
        deadline = time.monotonic() + _CHECK_SECONDS
        return [self._answer(*one, max(0.0, deadline - time.monotonic())) for one in asked]

    def _answer(
        self, name: str, plugin_id: str, wait: Callable[[float], HealthReport], seconds: float
    ) -> CheckAnswer:
        try:
            report = wait(seconds)
        except TimeoutError:
            late = HealthReport(HealthStatus.DEGRADED, "The check does not answer.")
            return CheckAnswer(name, plugin_id, late)
        except DatabaseClosed:
            # Below the check, by a server that stops: no failure of the check.
            answer = CheckAnswer(name, plugin_id, HealthReport(HealthStatus.DEGRADED, "The server stops."))
        except Exception as error:  # noqa: BLE001 - a check that fails is a finding
            _log.warning(
                "health check failed", exc_info=error, extra={"fields": {"check": name, "plugin": plugin_id}}
            )
            failed = HealthReport(HealthStatus.DEGRADED, "The check failed.")
            answer = CheckAnswer(name, plugin_id, failed, describe_failure(error))
        else:
            answer = CheckAnswer(name, plugin_id, replace(report, message=redact_text(report.message)))
        if self._under_way.get(name) is wait:
            del self._under_way[name]
        return answer


def _ask(item: Registered[HealthCheck], context: PluginContext) -> HealthReport:
    with plugin_step(item.plugin_id, f"the health check {item.name}"):
        report = item.value.check(context)
    if not isinstance(report, HealthReport):
        raise TypeError(f"it gives {type(report).__name__} for a HealthReport")
    return report


def auth_failure(plugin_id: str, error: Exception) -> Finding:
    """The finding for an auth mode that raises what it should not."""
    return Finding(
        "auth.failing",
        plugin_id,
        f"The auth mode of the plugin {plugin_id!r} fails: requests are not answered.",
        "Look at the log of the server for the trace.",
        detail=describe_failure(error),
    )


def _auth_findings(live: LiveService) -> Iterator[Finding]:
    plugin_id = live.auth_plugin_id
    try:
        live.auth_mode  # noqa: B018 - to have it is to bind it to the settings that its plugin has now
    except ServiceUnavailable:
        yield Finding(
            "auth.unavailable",
            plugin_id,
            f"The plugin {plugin_id!r} of the auth mode is not in use: every request for which somebody must "
            "be identified is refused.",
            f"'svc plugins enable {plugin_id}' enables it; if that is so, see what else is said of it.",
        )
    except Exception as error:  # noqa: BLE001 - whatever a mode raises, it is a finding
        yield auth_failure(plugin_id, error)
    else:
        yield from live.auth_failures.findings()
