"""The plugin framework: everything with an opinion in svc is added through it.

From entry points of installed distributions it makes frozen registries of routes, auth modes and other
families, and a list of what is wrong with which plugin. A database records which it has enabled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svc.confidential import Confidential
from svc.plugins.authentication import SelectedAuthMode, accepts_root_key, select_auth_mode
from svc.plugins.configuration import (
    parse_assignments,
    require_fitting_options,
    settings_as_shown,
    validate_settings,
)
from svc.plugins.context import PluginContext
from svc.plugins.contracts import (
    ROOT_IDENTITY,
    ROOT_USER_ID,
    AuthContext,
    AuthMode,
    BackgroundJob,
    ContentCheck,
    Credentials,
    FinishedRequest,
    HealthCheck,
    HealthReport,
    HealthStatus,
    Identity,
    JobContext,
    JobRegistry,
    KnownUser,
    Operation,
    RequestObserver,
    Rights,
    ScopedRule,
)
from svc.plugins.descriptor import (
    BackupRule,
    CommandHome,
    CompletionHome,
    PluginDescriptor,
    StartOption,
    SyncRule,
    SystemPath,
)
from svc.plugins.discovery import PluginProblem, ProblemKind, forget_installed, parse_allowed
from svc.plugins.enabled import (
    EnabledPlugin,
    awaits_first_plugins,
    enabled_plugins,
    first_plugins,
    read_settings,
    require_enabled,
)
from svc.plugins.enabling import configure, disable, enable, initialize
from svc.plugins.families import Extension, Family
from svc.plugins.hookspecs import hookimpl, hookspec
from svc.plugins.inspection import PluginReport, describe_plugins, diagnose, parse_options, plugin_findings
from svc.plugins.lifecycle import ActivePlugins, register_views
from svc.plugins.loading import Plugins, load_descriptors, load_plugins
from svc.plugins.needs import all_needed
from svc.plugins.registry import (
    NamedRegistry,
    Route,
    RouteRegistry,
)
from svc.plugins.secret import Secret

if TYPE_CHECKING:
    from svc.log import LogPlace as LogPlace
    from svc.log import LogStorage as LogStorage
    from svc.log import StorageBackend as StorageBackend
    from svc.log import Writability as Writability
    from svc.plugins.system_paths import SystemPaths as SystemPaths

__all__ = [
    "ROOT_IDENTITY",
    "ROOT_USER_ID",
    "ActivePlugins",
    "AuthContext",
    "AuthMode",
    "BackgroundJob",
    "BackupRule",
    "CommandHome",
    "CompletionHome",
    "Confidential",
    "ContentCheck",
    "Credentials",
    "EnabledPlugin",
    "Extension",
    "Family",
    "FinishedRequest",
    "HealthCheck",
    "HealthReport",
    "HealthStatus",
    "Identity",
    "JobContext",
    "JobRegistry",
    "KnownUser",
    "LogPlace",
    "LogStorage",
    "NamedRegistry",
    "Operation",
    "PluginContext",
    "PluginDescriptor",
    "PluginProblem",
    "PluginReport",
    "Plugins",
    "ProblemKind",
    "RequestObserver",
    "Rights",
    "Route",
    "RouteRegistry",
    "ScopedRule",
    "Secret",
    "SelectedAuthMode",
    "StartOption",
    "StorageBackend",
    "SyncRule",
    "SystemPath",
    "SystemPaths",
    "accepts_root_key",
    "all_needed",
    "awaits_first_plugins",
    "configure",
    "describe_plugins",
    "diagnose",
    "disable",
    "enable",
    "enabled_plugins",
    "first_plugins",
    "forget_installed",
    "hookimpl",
    "hookspec",
    "initialize",
    "load_descriptors",
    "load_plugins",
    "parse_allowed",
    "parse_assignments",
    "parse_options",
    "plugin_findings",
    "read_settings",
    "register_views",
    "require_enabled",
    "require_fitting_options",
    "select_auth_mode",
    "settings_as_shown",
    "validate_settings",
]


def __getattr__(name: str) -> Any:
    # The contract of storage media belongs to the log, which a light descriptor module must not import.
    if name in ("LogPlace", "LogStorage", "StorageBackend"):
        import svc.log

        return getattr(svc.log, name)
    if name == "SystemPaths":
        from svc.plugins.system_paths import SystemPaths

        return SystemPaths
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
