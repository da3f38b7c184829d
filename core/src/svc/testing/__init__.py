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
    from svc.testing.applications import PathRights, serve_in_process
    from svc.testing.auth_modes import AuthModeContract
    from svc.testing.distributions import DistributionFactory
    from svc.testing.faults import Fault, inject
    from svc.testing.plugins import PluginContract
    from svc.testing.processes import Completed, Server, free_port, run_svc, start_server
    from svc.testing.storage import StorageBackendContract
    from svc.testing.testing_auth import (
        TESTING_ROOT_KEY,
        TestingAuthMode,
        install_testing_auth,
        load_with_testing_auth,
    )
    from svc.testing.view_storage import InterruptedStorage, MemoryViewStorage
    from svc.testing.views import ViewContract

__all__ = [
    "TESTING_ROOT_KEY",
    "AuthModeContract",
    "Completed",
    "DistributionFactory",
    "Fault",
    "InterruptedStorage",
    "MemoryViewStorage",
    "PathRights",
    "PluginContract",
    "Server",
    "StorageBackendContract",
    "TestingAuthMode",
    "ViewContract",
    "free_port",
    "inject",
    "install_testing_auth",
    "load_with_testing_auth",
    "run_svc",
    "serve_in_process",
    "start_server",
]

_HOMES = {
    "TESTING_ROOT_KEY": "svc.testing.testing_auth",
    "AuthModeContract": "svc.testing.auth_modes",
    "Completed": "svc.testing.processes",
    "DistributionFactory": "svc.testing.distributions",
    "Fault": "svc.testing.faults",
    "InterruptedStorage": "svc.testing.view_storage",
    "MemoryViewStorage": "svc.testing.view_storage",
    "PathRights": "svc.testing.applications",
    "PluginContract": "svc.testing.plugins",
    "Server": "svc.testing.processes",
    "StorageBackendContract": "svc.testing.storage",
    "TestingAuthMode": "svc.testing.testing_auth",
    "ViewContract": "svc.testing.views",
    "free_port": "svc.testing.processes",
    "inject": "svc.testing.faults",
    "install_testing_auth": "svc.testing.testing_auth",
    "load_with_testing_auth": "svc.testing.testing_auth",
    "run_svc": "svc.testing.processes",
    "serve_in_process": "svc.testing.applications",
    "start_server": "svc.testing.processes",
}


def __getattr__(name: str) -> Any:
    # Every run of pytest imports this package for its fixtures: what is not used is not loaded.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
