"""What the kernel's operations take and answer."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field

from svc.confidential import Confidential
from svc.findings import Finding

__all__ = [
    "CheckState",
    "DescribedSettings",
    "DisabledPlugin",
    "Findings",
    "Health",
    "Information",
    "PluginInfo",
    "PluginList",
    "PluginSettings",
    "PublicFinding",
    "SettingsChange",
    "TreeTotals",
    "WhoAmI",
]

Time = Annotated[int, Meta(description="Unix milliseconds.")]


class PublicFinding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that is wrong, as a stranger may read it."""

    code: str
    source: str
    message: str
    advice: str = ""
    since_ms: int | None = None


class CheckState(Struct, frozen=True, omit_defaults=True):
    """What one health check says."""

    status: str
    message: str = ""


class Health(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a server is: ``starting``, ``healthy`` or ``degraded``. Of a start also how far it is."""

    status: str
    service: str
    version: str
    checks: dict[str, CheckState] = field(default_factory=dict)
    findings: list[PublicFinding] = field(default_factory=list)
    phase: str | None = None
    progress: float | None = None
    eta_ms: int | UnsetType | None = UNSET
    message: str | None = None


class Findings(Struct, frozen=True):
    """All that is wrong."""

    findings: list[Finding]


class TreeTotals(Struct, frozen=True):
    """How much HEAD holds; sizes in bytes."""

    files: int
    directories: int
    symlinks: int
    size: int
    chunks: int
    chunk_bytes: int


class Information(Struct, frozen=True):
    """What a database is and holds. ``views`` has the number of the last commit that each has applied."""

    path: str
    database_id: str
    format: str
    version: str
    system_version: str
    sequence: int
    created_at: Time | None
    committed_at: Time | None
    totals: TreeTotals
    file_size: int
    objects: int
    views: dict[str, int]
    findings: list[Finding]
    plugins: list[str]


class WhoAmI(Struct, frozen=True):
    """As whom a server knows the caller."""

    user_id: str | None
    name: str
    is_root: bool
    auth_mode: str
    key_id: str | None
    groups: list[str]
    rules: list[dict[str, str]]
    expires_at: Time | None


class PluginInfo(Struct, frozen=True):
    """A plugin that is installed, allowed or enabled, as ``svc.plugins.PluginReport`` has it."""

    id: str
    version: str
    summary: str
    distribution: str | None
    installed: bool
    allowed: bool
    enabled: bool | None
    problem: str | None
    problem_kind: str | None
    adds: dict[str, list[str]]
    drives: list[str]
    rests: list[str]
    configuration: dict[str, Any] | None


class PluginList(Struct, frozen=True):
    """Every plugin that is installed, allowed or enabled."""

    plugins: list[PluginInfo]


class PluginSettings(Confidential, frozen=True):
    """The settings that a plugin is enabled with."""

    configuration: dict[str, Any] = field(default_factory=dict)


class DescribedSettings(Struct, frozen=True, kw_only=True):
    """The settings of a plugin, and what they may be. Secrets are hidden.

    Attributes:
        id: of the plugin.
        enabled: whether the database uses it.
        schema: JSON Schema of the settings; a secret is ``writeOnly``.
        stored: those that the database sets; for all others the defaults hold.
        given: names of those that this server was started with, which count before what is stored.
        needs_restart: whether a running server uses the plugin only from its next start on.
        needs: ids of plugins that must be enabled with it.
        needed_by: ids of those in this database that need it, so that it can't be disabled.
    """

    id: str
    enabled: bool
    schema: dict[str, Any]
    stored: dict[str, Any]
    given: list[str]
    needs_restart: bool
    needs: list[str]
    needed_by: list[str]


class SettingsChange(Confidential, frozen=True, forbid_unknown_fields=True):
    """Settings to change, and dotted names of those whose defaults shall hold again."""

    shown = ("unset",)

    configuration: dict[str, Any] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)


class DisabledPlugin(Struct, frozen=True):
    """A plugin that was disabled; ``warning`` where it failed meanwhile."""

    id: str
    enabled: bool
    warning: str | UnsetType = UNSET
