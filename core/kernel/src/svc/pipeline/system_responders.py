"""What answers for the kernel's own operations by hand: health answers before the database is open."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import falcon

from svc.findings import public_findings
from svc.pipeline.responses import send_json
from svc.plugins.steps import hanging_steps

if TYPE_CHECKING:
    from svc.pipeline.context import SvcRequest
    from svc.pipeline.diagnosis import CheckAnswer
    from svc.pipeline.service import StartState

__all__ = ["show_health", "version_of_svc"]


_CHECKED_SECONDS = 0.1
"""Whoever asks more often is told the same: it is public, and asks all plugins."""


def show_health(req: SvcRequest, resp: falcon.Response) -> None:
    """200 when requests are served (``healthy``, ``degraded``), 503 while they are not."""
    service = req.context.service
    live = service.live
    body: dict[str, Any] = {"status": "starting", "service": "svc", "version": version_of_svc()}
    if live is None:
        _describe_start(body, service.state)
        hanging = hanging_steps()
        if hanging:
            body["findings"] = public_findings(hanging)
        resp.set_header("Retry-After", "1")
        send_json(resp, body, 503)
        return
    answers = live.checks(_CHECKED_SECONDS)
    findings = service.findings()
    body["status"] = "degraded" if findings else "healthy"
    if answers:
        body["checks"] = {answer.name: _public_answer(answer) for answer in answers}
    if findings:
        body["findings"] = public_findings(findings)
    send_json(resp, body)


def _describe_start(body: dict[str, Any], state: StartState) -> None:
    body["phase"] = state.phase
    if state.phase == "failed":
        body["status"] = "degraded"
        body["message"] = state.message
    else:
        body["progress"] = state.progress
        body["eta_ms"] = state.eta_ms


def _public_answer(answer: CheckAnswer) -> dict[str, str]:
    members = {"status": answer.report.status.value}
    return {**members, "message": answer.report.message} if answer.report.message else members


@lru_cache(maxsize=1)
def version_of_svc() -> str:
    """The version of the installed kernel."""
    try:
        return version("svc-core")
    except PackageNotFoundError:
        return "unknown"
