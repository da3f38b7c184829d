"""The system's own calls in a process that gevent may have patched.

In native threads gevent's cooperative calls would make an event loop for each thread, and watch child
processes from a loop that is not theirs.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

__all__ = ["native"]


def native(module: str, name: str) -> Any:
    """Returns what a module has under a name, as it was before gevent patched it."""
    monkey: Any = sys.modules.get("gevent.monkey")
    if monkey is None:
        return getattr(importlib.import_module(module), name)
    return monkey.get_original(module, name)
