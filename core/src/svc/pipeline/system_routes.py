"""The kernel's own routes: health, and the plugins of the database."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import falcon
import msgspec
import structlog

from svc.errors import NotFound
from svc.pipeline.bodies import read_json
from svc.pipeline.declarations import public, requires_root
from svc.pipeline.responses import send_json
from svc.pipeline.routing import HEALTH_TEMPLATE, KERNEL_PLUGIN
from svc.plugins import HealthStatus, Route, configure, describe_plugins, disable, enable

if TYPE_CHECKING:
    from svc.pipeline.context import SvcRequest
    from svc.pipeline.service import LiveService, Service
    from svc.plugins import PluginReport

__all__ = ["kernel_routes", "version_of_svc"]

_log = structlog.get_logger("svc.health")


class HealthResource:
    """``GET /system/health``: whether this is svc, and how it is. Answers at every moment of a start."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @public
    def on_get(self, _req: SvcRequest, resp: falcon.Response) -> None:
        """200 when requests are served (``healthy``, ``degraded``), 503 while they are not."""
        live = self._service.live
        body: dict[str, Any] = {"status": "starting", "service": "svc", "version": version_of_svc()}
        resp.set_header("Cache-Control", "no-store")
        if live is None:
            self._describe_start(body)
            resp.set_header("Retry-After", "1")
            send_json(resp, body, 503)
            return
        checks = dict(_run_checks(live)) | self._own_findings(live)
        is_healthy = all(answer["status"] == "healthy" for answer in checks.values())
        body["status"] = "healthy" if is_healthy else "degraded"
        if checks:
            body["checks"] = checks
        send_json(resp, body)

    def _own_findings(self, live: LiveService) -> dict[str, dict[str, str]]:
        """What is wrong with the database and the processes beside this one; none of it a secret."""
        found = dict(self._service.watch() if self._service.watch is not None else {})
        if live.database.head().latched:
            found["database"] = "The database takes no writes after an I/O error."
        degraded = HealthStatus.DEGRADED.value
        return {name: {"status": degraded, "message": message} for name, message in found.items()}

    def _describe_start(self, body: dict[str, Any]) -> None:
        state = self._service.state
        body["phase"] = state.phase
        if state.phase == "failed":
            body["status"] = "degraded"
            body["message"] = state.message
        else:
            body["progress"] = state.progress
            body["eta_ms"] = state.eta_ms


def _run_checks(live: LiveService) -> list[tuple[str, dict[str, str]]]:
    answers = []
    for item in live.plugins.registries.health_checks:
        context = live.plugin_context(item.plugin_id)
        if context is None:
            continue
        try:
            report = item.value.check(context)
        except Exception as error:  # noqa: BLE001 - a check that fails is a finding
            _log.warning("health check failed", check=item.name, plugin=item.plugin_id, exc_info=error)
            answers.append(
                (item.name, {"status": HealthStatus.DEGRADED.value, "message": "The check failed."})
            )
            continue
        answer = {"status": report.status.value}
        if report.message:
            answer["message"] = report.message
        answers.append((item.name, answer))
    return answers


class EnableBody(msgspec.Struct):
    """Body of ``POST /system/plugins/{id}/enable``; it may be left out."""

    configuration: dict[str, Any] = {}


class PluginsResource:
    """``/system/plugins``: what is installed, allowed and enabled, and how it is set. Root's."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @requires_root
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Lists every plugin that is installed, allowed or enabled."""
        reports = describe_plugins(self._service.plugins, req.context.database)
        send_json(resp, {"plugins": reports})

    @requires_root
    def on_post_enable(self, req: SvcRequest, resp: falcon.Response, plugin_id: str) -> None:
        """Enables a plugin in this database, with settings if the body has some."""
        has_body = req.env["svc.input"].declared != 0
        body = read_json(req, EnableBody) if has_body else EnableBody()
        context = req.context
        self._require_known(plugin_id, req)
        enable(context.database, self._service.plugins, plugin_id, body.configuration, actor=context.actor)
        send_json(resp, self._report(plugin_id, req))

    @requires_root
    def on_post_disable(self, req: SvcRequest, resp: falcon.Response, plugin_id: str) -> None:
        """Disables a plugin in this database; from now on its routes answer 404."""
        context = req.context
        disable(context.database, self._service.plugins, plugin_id, actor=context.actor)
        send_json(resp, {"id": plugin_id, "enabled": False})

    @requires_root
    def on_put_configuration(self, req: SvcRequest, resp: falcon.Response, plugin_id: str) -> None:
        """Replaces the settings of an enabled plugin by the JSON object of the body."""
        settings: dict[str, Any] = read_json(req, dict[str, Any])
        context = req.context
        configure(context.database, self._service.plugins, plugin_id, settings, actor=context.actor)
        send_json(resp, self._report(plugin_id, req))

    def _report(self, plugin_id: str, req: SvcRequest) -> PluginReport:
        reports = describe_plugins(self._service.plugins, req.context.database)
        found = next((report for report in reports if report.id == plugin_id), None)
        if found is None:
            raise NotFound("There is no plugin of this id.", plugin=plugin_id)
        return found

    def _require_known(self, plugin_id: str, req: SvcRequest) -> None:
        self._report(plugin_id, req)


def kernel_routes(service: Service) -> tuple[Route, ...]:
    """Returns the kernel's own routes."""
    plugins = PluginsResource(service)
    return (
        Route(HEALTH_TEMPLATE, HealthResource(service), None, KERNEL_PLUGIN),
        Route("/system/plugins", plugins, None, KERNEL_PLUGIN),
        Route("/system/plugins/{plugin_id}/enable", plugins, "enable", KERNEL_PLUGIN),
        Route("/system/plugins/{plugin_id}/disable", plugins, "disable", KERNEL_PLUGIN),
        Route("/system/plugins/{plugin_id}/configuration", plugins, "configuration", KERNEL_PLUGIN),
    )


@lru_cache(maxsize=1)
def version_of_svc() -> str:
    """The version of the installed kernel."""
    try:
        return version("svc-core")
    except PackageNotFoundError:
        return "unknown"
