"""The kernel's own operations: health, what is wrong, what the database is, and its plugins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from svc.errors import NotFound, PluginMissing, ServiceUnavailable
from svc.operations.access import public, requires_identity, requires_root
from svc.operations.declaration import Weight, operation
from svc.operations.system_models import (
    DescribedSettings,
    DisabledPlugin,
    Findings,
    Health,
    Information,
    PluginInfo,
    PluginList,
    PluginSettings,
    SettingsChange,
    WhoAmI,
)

if TYPE_CHECKING:
    from svc.operations.call import Call
    from svc.plugins import PluginReport

__all__ = [
    "change_settings",
    "configure_plugin",
    "disable_plugin",
    "enable_plugin",
    "list_findings",
    "list_plugins",
    "reports_of",
    "show_caller",
    "show_health",
    "show_information",
    "show_openapi",
    "show_root_page",
    "show_settings",
]

HEALTH_TEMPLATE = "/system/health"
"""The one route that answers while the database is being opened."""


@operation(
    "GET",
    "/",
    public,
    weight=Weight.SMALL,
    media_types=("", "text/html"),
    responder="svc.pipeline.root_page:show_root_page",
)
def show_root_page(call: Call) -> bytes | dict[str, str]:
    """Says what this is: a page for people, JSON for programs."""


@operation(
    "GET",
    HEALTH_TEMPLATE,
    public,
    errors=(ServiceUnavailable,),
    weight=Weight.SMALL,
    responder="svc.pipeline.system_responders:show_health",
)
def show_health(call: Call) -> Health:
    """Shows how the server is; answers at every moment of a start, with 503 until requests are served."""


@operation("GET", "/system/openapi.json", public, weight=Weight.DEAR)
def show_openapi(call: Call) -> dict[str, Any]:
    """Describes every operation of this server in the form of OpenAPI 3.1."""
    from svc.pipeline.openapi import describe_operations

    return describe_operations(call)


@operation("GET", "/system/findings", requires_root, weight=Weight.SMALL, cache="no-store")
def list_findings(call: Call) -> Findings:
    """Lists all that is wrong, with what only root may read of it."""
    return Findings(list(call.findings()))


@operation("GET", "/system/info", requires_root, weight=Weight.SMALL)
def show_information(call: Call) -> Information:
    """Describes the database, as ``svc info`` shows it."""
    from svc.database import information
    from svc.plugins import enabled_plugins

    facts = {**information(call.database), "plugins": sorted(enabled_plugins(call.database))}
    return msgspec.convert(facts, Information)


@operation("GET", "/system/whoami", requires_identity, weight=Weight.SMALL, cache="no-store")
def show_caller(call: Call) -> WhoAmI:
    """Shows as whom the caller is known."""
    identity = call.identity
    return WhoAmI(
        user_id=identity.user_id,
        name=identity.name,
        is_root=identity.is_root,
        auth_mode=identity.auth_mode,
        key_id=identity.key_id,
        groups=sorted(identity.groups),
        rules=[{rule.glob: rule.flags} for rule in identity.rules],
        expires_at=identity.expires_ms,
    )


@operation("GET", "/system/plugins", requires_root, weight=Weight.DEAR)
def list_plugins(call: Call) -> PluginList:
    """Lists every plugin that is installed, allowed or enabled."""
    from svc.plugins import describe_plugins

    return PluginList(reports_of(describe_plugins(call.plugins, call.database, call.findings())))


@operation(
    "POST",
    "/system/plugins/{plugin_id}/enable",
    requires_root,
    errors=(NotFound, PluginMissing),
    weight=Weight.DEAR,
)
def enable_plugin(call: Call, plugin_id: str, body: PluginSettings = PluginSettings()) -> PluginInfo:
    """Enables a plugin in the database, with settings."""
    from svc.plugins import enable

    _report_of(call, plugin_id)
    enable(call.database, call.plugins, plugin_id, body.configuration, actor=call.actor)
    return _report_of(call, plugin_id)


@operation(
    "POST", "/system/plugins/{plugin_id}/disable", requires_root, errors=(NotFound,), weight=Weight.DEAR
)
def disable_plugin(call: Call, plugin_id: str) -> DisabledPlugin:
    """Disables a plugin in the database; from now on its routes answer 404."""
    from svc.plugins import disable

    warning = disable(call.database, call.plugins, plugin_id, actor=call.actor)
    return DisabledPlugin(plugin_id, False, UNSET if warning is None else warning)


@operation(
    "PUT",
    "/system/plugins/{plugin_id}/configuration",
    requires_root,
    errors=(NotFound, PluginMissing),
    weight=Weight.DEAR,
)
def configure_plugin(call: Call, plugin_id: str, body: dict[str, Any]) -> PluginInfo:
    """Replaces the settings of an enabled plugin."""
    from svc.plugins import configure

    configure(call.database, call.plugins, plugin_id, body, actor=call.actor)
    return _report_of(call, plugin_id)


@operation(
    "GET", "/system/plugins/{plugin_id}/configuration", requires_root, weight=Weight.DEAR, cache="no-store"
)
def show_settings(call: Call, plugin_id: str) -> DescribedSettings:
    """Shows the settings of a plugin, and what they may be; secrets are hidden."""
    from svc.plugins.settings_schema import describe_settings

    _report_of(call, plugin_id)
    return DescribedSettings(**describe_settings(call.plugins, call.database, plugin_id))


@operation(
    "PATCH",
    "/system/plugins/{plugin_id}/configuration",
    requires_root,
    errors=(NotFound, PluginMissing),
    weight=Weight.DEAR,
    repeatable=True,
)
def change_settings(call: Call, plugin_id: str, body: SettingsChange) -> PluginInfo:
    """Changes what the body names of the settings of an enabled plugin; all others stay."""
    from svc.plugins import changing

    changing.change_settings(
        call.database, call.plugins, plugin_id, body.configuration, body.unset, actor=call.actor
    )
    return _report_of(call, plugin_id)


def reports_of(reports: Iterable[PluginReport]) -> list[PluginInfo]:
    """Returns what is answered of plugins."""
    return [PluginInfo(**msgspec.structs.asdict(report)) for report in reports]


def _report_of(call: Call, plugin_id: str) -> PluginInfo:
    for report in list_plugins(call).plugins:
        if report.id == plugin_id:
            return report
    raise NotFound("There is no plugin of this id.", plugin=plugin_id)
