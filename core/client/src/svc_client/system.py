"""How a server is, and which plugins its database uses."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from svc.errors import ServiceUnavailable
from svc.findings import Finding
from svc_client.failures import foreign_answer
from svc_client.models import Health, PluginInfo, WhoAmI
from svc_client.transport import Transport

__all__ = ["System"]


class _Plugins(msgspec.Struct):
    plugins: list[PluginInfo]


class _Findings(msgspec.Struct):
    findings: list[Finding]


class _Totals(msgspec.Struct):
    files: int
    directories: int
    symlinks: int
    size: int


class _FindingOfInfo(msgspec.Struct):
    message: str
    advice: str


class _Info(msgspec.Struct):
    path: str
    database_id: str
    format: str
    created_at: int | None
    version: str
    sequence: int
    committed_at: int | None
    totals: _Totals
    file_size: int
    objects: int
    plugins: list[str]
    findings: list[_FindingOfInfo]


class _Disabled(msgspec.Struct):
    warning: str | None = None


class System:
    """``/system``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def health(self) -> Health:
        """Returns how the server is, also while it does not serve yet."""
        try:
            response = self._transport.request("GET", "/system/health", repeatable=False)
        except ServiceUnavailable as error:
            if error.details.get("service") != "svc":
                raise
            try:
                return msgspec.convert(error.details, Health)
            except msgspec.ValidationError:
                raise foreign_answer(self._transport.address.url) from None
        return response.json(Health)

    def whoami(self) -> WhoAmI:
        """Returns as whom the server knows the caller."""
        return self._transport.json("GET", "/system/whoami", WhoAmI)

    def info(self) -> dict[str, Any]:
        """Returns what the database is and holds, as ``svc info --json`` prints it. Root's."""
        return self._transport.document("GET", "/system/info", _Info)

    def findings(self) -> list[dict[str, Any]]:
        """Returns all that is wrong, with what only root may read of it. Root's."""
        found: list[dict[str, Any]] = self._transport.document("GET", "/system/findings", _Findings)[
            "findings"
        ]
        return found

    def plugins(self) -> list[PluginInfo]:
        """Returns every plugin that is installed, allowed or enabled. Root's."""
        return self._transport.json("GET", "/system/plugins", _Plugins).plugins

    def enable_plugin(self, plugin_id: str, configuration: dict[str, Any] | None = None) -> PluginInfo:
        """Enables a plugin in the database, with settings. Root's."""
        value = {"configuration": configuration or {}}
        return self._transport.json("POST", _plugin(plugin_id, "enable"), PluginInfo, value=value)

    def disable_plugin(self, plugin_id: str) -> str | None:
        """Disables a plugin in the database; returns a warning if it failed meanwhile. Root's."""
        return self._transport.json("POST", _plugin(plugin_id, "disable"), _Disabled).warning

    def configure_plugin(self, plugin_id: str, settings: dict[str, Any]) -> PluginInfo:
        """Replaces the settings of an enabled plugin. Root's."""
        return self._transport.json("PUT", _plugin(plugin_id, "configuration"), PluginInfo, value=settings)


def _plugin(plugin_id: str, action: str) -> str:
    return f"/system/plugins/{quote(plugin_id, safe='')}/{action}"
