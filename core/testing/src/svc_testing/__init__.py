"""The test kit for authors of plugins, and for svc's own tests: what our plugins pass, yours can pass too.

A contract class for each extension family: subclass it in a test module, give the fixture it asks for, and
inherit its tests. Fixtures (``database``, ``server``, ``run_svc``) come by themselves through pytest, with an
auth mode of their own, so that a plugin needs nothing but the kernel beside it; faults of disks and kills
of processes are injected by ``Fault``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svc_testing.applications import PathRights, serve_in_process
    from svc_testing.auth_modes import AuthModeContract
    from svc_testing.collecting import live_objects, simulate_collection
    from svc_testing.distributions import DistributionFactory
    from svc_testing.extensions import ExtensionContract, used_by
    from svc_testing.faults import Fault, inject
    from svc_testing.hook_pages import HookPagesContract
    from svc_testing.memory_storage import (
        MEMORY_BACKENDS,
        MemoryBackend,
        forget_memory,
        install_memory_storage,
    )
    from svc_testing.operations import OperationsContract, Teller
    from svc_testing.plugin_pages import PluginPagesContract
    from svc_testing.plugins import PluginContract, commands_of
    from svc_testing.processes import Completed, Server, free_port, run_svc, start_server
    from svc_testing.storage import StorageBackendContract
    from svc_testing.testing_auth import (
        TESTING_ROOT_KEY,
        TestingAuthMode,
        install_testing_auth,
        load_with_testing_auth,
    )
    from svc_testing.view_storage import InterruptedStorage, MemoryViewStorage
    from svc_testing.views import ViewContract

__all__ = [
    "MEMORY_BACKENDS",
    "TESTING_ROOT_KEY",
    "AuthModeContract",
    "Completed",
    "DistributionFactory",
    "ExtensionContract",
    "Fault",
    "HookPagesContract",
    "InterruptedStorage",
    "MemoryBackend",
    "MemoryViewStorage",
    "OperationsContract",
    "PathRights",
    "PluginContract",
    "PluginPagesContract",
    "Server",
    "StorageBackendContract",
    "Teller",
    "TestingAuthMode",
    "ViewContract",
    "commands_of",
    "forget_memory",
    "free_port",
    "inject",
    "install_memory_storage",
    "install_testing_auth",
    "live_objects",
    "load_with_testing_auth",
    "run_svc",
    "serve_in_process",
    "simulate_collection",
    "start_server",
    "used_by",
]

_HOMES = {
    "MEMORY_BACKENDS": "svc_testing.memory_storage",
    "MemoryBackend": "svc_testing.memory_storage",
    "forget_memory": "svc_testing.memory_storage",
    "install_memory_storage": "svc_testing.memory_storage",
    "TESTING_ROOT_KEY": "svc_testing.testing_auth",
    "AuthModeContract": "svc_testing.auth_modes",
    "Completed": "svc_testing.processes",
    "DistributionFactory": "svc_testing.distributions",
    "ExtensionContract": "svc_testing.extensions",
    "Fault": "svc_testing.faults",
    "HookPagesContract": "svc_testing.hook_pages",
    "InterruptedStorage": "svc_testing.view_storage",
    "MemoryViewStorage": "svc_testing.view_storage",
    "OperationsContract": "svc_testing.operations",
    "PathRights": "svc_testing.applications",
    "PluginContract": "svc_testing.plugins",
    "commands_of": "svc_testing.plugins",
    "PluginPagesContract": "svc_testing.plugin_pages",
    "Server": "svc_testing.processes",
    "StorageBackendContract": "svc_testing.storage",
    "Teller": "svc_testing.operations",
    "TestingAuthMode": "svc_testing.testing_auth",
    "ViewContract": "svc_testing.views",
    "free_port": "svc_testing.processes",
    "inject": "svc_testing.faults",
    "install_testing_auth": "svc_testing.testing_auth",
    "load_with_testing_auth": "svc_testing.testing_auth",
    "run_svc": "svc_testing.processes",
    "live_objects": "svc_testing.collecting",
    "simulate_collection": "svc_testing.collecting",
    "serve_in_process": "svc_testing.applications",
    "start_server": "svc_testing.processes",
    "used_by": "svc_testing.extensions",
}


def __getattr__(name: str) -> Any:
    # Every run of pytest imports this package for its fixtures: what is not used is not loaded.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
