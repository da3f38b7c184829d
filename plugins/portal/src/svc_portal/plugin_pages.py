"""The pages of plugins, for root: which there are and how they are, and the settings of each as a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc.errors import AuthRequired, SvcError
from svc.operations.system import (
    change_settings,
    disable_plugin,
    enable_plugin,
    list_plugins,
    show_settings,
)
from svc.operations.system_models import PluginInfo, PluginSettings
from svc_portal.api import Act, Answer, Message, RootPage, Shown, Undo
from svc_portal.settings_form import change_of, fields_of

if TYPE_CHECKING:
    from svc_portal.requests import PortalRequest

__all__ = ["PluginPage", "PluginsPage"]


class PluginsPage(RootPage):
    """All plugins that are installed, allowed or enabled."""

    name: ClassVar[str] = "plugins"
    path: ClassVar[str] = "plugins"
    title: ClassVar[str] = "Plugins"
    place: ClassVar[int | None] = 85

    def show(self, request: PortalRequest) -> Answer:
        """Those with a problem first, then those in use."""
        reports = sorted(
            request.call(list_plugins).plugins, key=lambda one: (not one.problem, not one.enabled)
        )
        rows = [
            {"plugin": one, "state": _state(one), "url": request.url("plugins.one", plugin=one.id)}
            for one in reports
        ]
        return Shown("plugins.html", {"rows": rows})


class PluginPage(RootPage):
    """One plugin: what it adds, its settings, and whether the database uses it."""

    name: ClassVar[str] = "plugins.one"
    path: ClassVar[str] = "plugins/{plugin}"
    title: ClassVar[str] = "Plugin"
    follows: ClassVar[str | None] = "plugins"

    def show(self, request: PortalRequest) -> Answer:
        """The form has what is stored; what holds by default stands beside it."""
        return _shown(request)

    def acts(self) -> Mapping[str, Act]:
        """Changes settings, enables or disables."""
        return {"save": _save, "enable": _enable, "disable": _disable}


def _shown(request: PortalRequest, refusal: SvcError | None = None) -> Shown:
    """The page; with a refusal, the form has what was said in it, but for secrets."""
    described = request.call(show_settings, request.fields["plugin"])
    plugin = next(one for one in request.call(list_plugins).plugins if one.id == described.id)
    fields = fields_of(described)
    named = "" if refusal is None else str(refusal.details.get("field") or "").partition(".")[0]
    is_beside = named in {one.name for one in fields}
    message = None if refusal is None or is_beside else Message(refusal.message, is_error=True)
    values = {
        "plugin": plugin,
        "state": _state(plugin),
        "described": described,
        "fields": fields,
        "said": {}
        if refusal is None
        else _said(request, [name for one in fields if one.was for name in (one.field, one.was)]),
        "refused": named if is_beside else None,
        "refusal": None if refusal is None else refusal.message,
        "adds": [(family.replace("_", " "), names) for family, names in plugin.adds.items()],
        "here": request.here,
        "all_url": request.url("plugins"),
    }
    status = 200 if refusal is None else refusal.status
    return Shown("plugin.html", values, title=f"Plugin {described.id}", message=message, status=status)


def _said(request: PortalRequest, fields: list[str]) -> dict[str, str]:
    return {name: request.form.get(name) for name in fields if name in request.form}


def _state(plugin: PluginInfo) -> str:
    if plugin.problem:
        return "has a problem"
    if plugin.enabled:
        return "enabled"
    if not plugin.installed:
        return "not installed"
    return "disabled" if plugin.allowed else "not allowed"


def _save(request: PortalRequest) -> Answer | Message:
    plugin_id = request.fields["plugin"]
    try:
        described = request.call(show_settings, plugin_id)
        change = change_of(described, request.form)
        if not (change.configuration or change.unset):
            return Message("Nothing was changed.")
        request.call(change_settings, plugin_id, change)
    except AuthRequired:
        raise
    except SvcError as error:
        return _shown(request, error)
    names = ", ".join([*change.configuration, *change.unset])
    return Message(f"Changed {names}." + _later(described.needs_restart))


def _enable(request: PortalRequest) -> Answer | Message:
    plugin_id = request.fields["plugin"]
    try:
        described = request.call(show_settings, plugin_id)
        settings: dict[str, Any] = change_of(described, request.form).configuration
        request.call(enable_plugin, plugin_id, PluginSettings(settings))
    except AuthRequired:
        raise
    except SvcError as error:
        return _shown(request, error)
    undo = Undo(request.here, {"action": "disable"})
    return Message(f"Enabled {plugin_id}." + _later(described.needs_restart), undo)


def _disable(request: PortalRequest) -> Message:
    disabled = request.call(disable_plugin, request.fields["plugin"])
    warning = disabled.warning if isinstance(disabled.warning, str) else ""
    return Message(f"Disabled {disabled.id}; its settings are forgotten. {warning}".rstrip())


def _later(needs_restart: bool) -> str:
    return " The server uses it from its next start on." if needs_restart else ""
