"""svc: a database of files that keeps every version.

The public API: ``Database`` to read and write, ``hookimpl`` and the contract classes to extend. Names
are imported when they are first used, so that a short command does not pay for the whole kernel.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from svc.database import Condition, Database, Transaction, Version, View
    from svc.plugins import PluginDescriptor, hookimpl

__all__ = [
    "Condition",
    "Database",
    "PluginDescriptor",
    "Transaction",
    "Version",
    "View",
    "__version__",
    "hookimpl",
]

__version__ = "0.1.0"

_HOMES = {
    "Condition": "svc.database",
    "Database": "svc.database",
    "PluginDescriptor": "svc.plugins",
    "Transaction": "svc.database",
    "Version": "svc.database",
    "View": "svc.database",
    "hookimpl": "svc.plugins",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'svc' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
