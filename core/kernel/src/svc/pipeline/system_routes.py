"""The kernel's own routes: health, and the plugins of the database."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import falcon
import msgspec

from svc.database import information
from svc.errors import NotFound
from svc.findings import public_findings
from svc.operations.access import public, requires_identity, requires_root
from svc.pipeline.bodies import read_json
from svc.pipeline.responses import send_json
from svc.pipeline.routing import HEALTH_TEMPLATE, KERNEL_PLUGIN
from svc.plugins import Route, configure, describe_plugins, disable, enable, enabled_plugins

if TYPE_CHECKING:
    from svc.pipeline.context import SvcRequest
    from svc.pipeline.diagnosis import CheckAnswer
    from svc.pipeline.service import Service
    from svc.plugins import PluginReport

__all__ = ["kernel_routes", "version_of_svc"]


class HealthResource:
    """``GET /system/health``: whether this is svc, and how it is. Answers at every moment of a start."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @public
    def on_get(self, _req: SvcRequest, resp: falcon.Response) -> None:
        """200 when requests are served (``healthy``, ``degraded``), 503 while they are not."""
        live = self._service.live
        body: dict[str, Any] = {"status": "starting", "service": "svc", "version": version_of_svc()}
        if live is None:
            self._describe_start(body)
            resp.set_header("Retry-After", "1")
            send_json(resp, body, 503)
            return
        answers = live.checks()
        findings = self._service.findings()
        body["status"] = "degraded" if findings else "healthy"
        if answers:
            body["checks"] = {answer.name: _public_answer(answer) for answer in answers}
        if findings:
            body["findings"] = public_findings(findings)
        send_json(resp, body)

    def _describe_start(self, body: dict[str, Any]) -> None:
        state = self._service.state
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


class FindingsResource:
    """``GET /system/findings``: all that is wrong, with what only root may read of it."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @requires_root
    def on_get(self, _req: SvcRequest, resp: falcon.Response) -> None:
        """Lists everything that is wrong."""
        resp.set_header("Cache-Control", "no-store")
        send_json(resp, {"findings": self._service.findings()})


class InformationResource:
    """``GET /system/info``: what the database is and holds, as ``svc info`` shows it. Root's."""

    @requires_root
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Describes the database."""
        database = req.context.database
        send_json(resp, {**information(database), "plugins": sorted(enabled_plugins(database))})


class WhoAmIResource:
    """``GET /system/whoami``: as whom the caller is known. Everyone's who is authenticated."""

    @requires_identity
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Describes the caller."""
        identity = req.context.identity
        resp.set_header("Cache-Control", "no-store")
        body = {
            "user_id": identity.user_id,
            "name": identity.name,
            "is_root": identity.is_root,
            "auth_mode": identity.auth_mode,
            "key_id": identity.key_id,
            "groups": sorted(identity.groups),
            "rules": [{rule.glob: rule.flags} for rule in identity.rules],
            "expires_at": identity.expires_ms,
        }
        send_json(resp, body)


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
        reports = self._reports(req)
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
        warning = disable(context.database, self._service.plugins, plugin_id, actor=context.actor)
        told = {} if warning is None else {"warning": warning}
        send_json(resp, {"id": plugin_id, "enabled": False, **told})

    @requires_root
    def on_put_configuration(self, req: SvcRequest, resp: falcon.Response, plugin_id: str) -> None:
        """Replaces the settings of an enabled plugin by the JSON object of the body."""
        settings: dict[str, Any] = read_json(req, dict[str, Any])
        context = req.context
        configure(context.database, self._service.plugins, plugin_id, settings, actor=context.actor)
        send_json(resp, self._report(plugin_id, req))

    def _reports(self, req: SvcRequest) -> list[PluginReport]:
        service = self._service
        service.require().commit_state()  # what was just enabled is started, or fails to
        return describe_plugins(service.plugins, req.context.database, service.findings())

    def _report(self, plugin_id: str, req: SvcRequest) -> PluginReport:
        found = next((report for report in self._reports(req) if report.id == plugin_id), None)
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
        Route("/system/findings", FindingsResource(service), None, KERNEL_PLUGIN),
        Route("/system/info", InformationResource(), None, KERNEL_PLUGIN),
        Route("/system/whoami", WhoAmIResource(), None, KERNEL_PLUGIN),
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
