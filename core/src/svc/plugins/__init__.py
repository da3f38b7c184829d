"""The plugin framework: everything with an opinion in svc is added through it.

Entry points of installed distributions and the records of a database flow in; frozen registries of routes,
commands, auth modes and the other families, and the list of what is wrong with which plugin, flow out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svc.plugins.authentication import SelectedAuthMode, accepts_root_key, select_auth_mode
from svc.plugins.configuration import (
    parse_assignments,
    settings_as_shown,
    validate_settings,
)
from svc.plugins.contracts import (
    ROOT_IDENTITY,
    ROOT_USER_ID,
    AuthContext,
    AuthMode,
    BackgroundJob,
    Credentials,
    Event,
    EventSink,
    EventTarget,
    EventType,
    FieldValue,
    HealthCheck,
    HealthReport,
    HealthStatus,
    Identity,
    Index,
    IndexChange,
    IndexDefinition,
    IndexKeys,
    IndexMatches,
    IndexType,
    JobContext,
    JobRegistry,
    Lookup,
    Operation,
    ParsedDocument,
    Parser,
    ParserInput,
    PeerAddress,
    QueryOperator,
    Rights,
    ScopedRule,
    SyncConnection,
    SyncTransport,
    TaskCancelled,
    TaskContext,
    TaskType,
)
from svc.plugins.descriptor import API_VERSION, PluginDescriptor
from svc.plugins.discovery import InstalledPlugin, PluginProblem, ProblemKind, parse_allowed
from svc.plugins.enabling import (
    EnabledPlugin,
    awaits_first_plugins,
    configure,
    disable,
    enable,
    enabled_plugins,
    initialize,
    require_enabled,
    stored_settings,
)
from svc.plugins.hookspecs import hookimpl
from svc.plugins.inspection import PluginReport, describe_plugins, diagnose, parse_options
from svc.plugins.lifecycle import ActivePlugins, PluginContext, register_views
from svc.plugins.loading import Plugins, load_plugins
from svc.plugins.registries import Registries
from svc.plugins.registry import (
    Command,
    CommandRegistry,
    NamedRegistry,
    Registered,
    Registry,
    Route,
    RouteRegistry,
)
from svc.plugins.secret import Secret

if TYPE_CHECKING:
    from svc.log import LogStorage as LogStorage
    from svc.log import StorageBackend as StorageBackend

__all__ = [
    "API_VERSION",
    "ROOT_IDENTITY",
    "ROOT_USER_ID",
    "ActivePlugins",
    "AuthContext",
    "AuthMode",
    "BackgroundJob",
    "Command",
    "CommandRegistry",
    "Credentials",
    "EnabledPlugin",
    "Event",
    "EventSink",
    "EventTarget",
    "EventType",
    "FieldValue",
    "HealthCheck",
    "HealthReport",
    "HealthStatus",
    "Identity",
    "Index",
    "IndexChange",
    "IndexDefinition",
    "IndexKeys",
    "IndexMatches",
    "IndexType",
    "InstalledPlugin",
    "JobContext",
    "JobRegistry",
    "LogStorage",
    "Lookup",
    "NamedRegistry",
    "Operation",
    "ParsedDocument",
    "Parser",
    "ParserInput",
    "PeerAddress",
    "PluginContext",
    "PluginDescriptor",
    "PluginProblem",
    "PluginReport",
    "Plugins",
    "ProblemKind",
    "QueryOperator",
    "Registered",
    "Registries",
    "Registry",
    "Rights",
    "Route",
    "RouteRegistry",
    "ScopedRule",
    "Secret",
    "SelectedAuthMode",
    "StorageBackend",
    "SyncConnection",
    "SyncTransport",
    "TaskCancelled",
    "TaskContext",
    "TaskType",
    "accepts_root_key",
    "awaits_first_plugins",
    "configure",
    "describe_plugins",
    "diagnose",
    "disable",
    "enable",
    "enabled_plugins",
    "hookimpl",
    "initialize",
    "load_plugins",
    "parse_allowed",
    "parse_assignments",
    "parse_options",
    "register_views",
    "require_enabled",
    "select_auth_mode",
    "settings_as_shown",
    "stored_settings",
    "validate_settings",
]


def __getattr__(name: str) -> Any:
    # The contract of storage media belongs to the log, which a light descriptor module must not import.
    if name in ("StorageBackend", "LogStorage"):
        import svc.log

        return getattr(svc.log, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
