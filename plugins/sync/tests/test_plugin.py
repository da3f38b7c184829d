"""The plugin keeps the contract of all plugins, and its pages say what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_sync import api
from svc_sync.configuration import SyncConfiguration
from svc_sync.models import (
    Admission,
    EnterBody,
    JoinRequest,
    PeerShown,
    ResolveBody,
    ResolvedConflict,
    ShownConflict,
    SyncStatus,
    TriggerResult,
    VersionShown,
)

from svc_testing import HookPagesContract, PluginContract, PluginPagesContract

DOCS = Path(__file__).parents[3] / "docs"


class TestSyncPlugin(PluginContract):
    plugin_id = "sync"


class TestHookPages(HookPagesContract):
    directory = DOCS / "hooks" / "sync"
    specifications = api
    driver_id = "sync"
    needs = ("auth.self", "events", "files", "users")


class TestPages(PluginPagesContract):
    docs = DOCS
    plugin_id = "sync"
    needs = ("users", "auth.self", "events", "files")
    plugin_page = "plugins/sync.md"
    http_page = "http/sync.md"
    routes_have_rows = False
    bodies = (
        *(SyncStatus, PeerShown, TriggerResult, EnterBody, JoinRequest, Admission),
        *(ShownConflict, VersionShown, ResolveBody, ResolvedConflict),
    )
    configuration = SyncConfiguration
    api = api
