"""Which executor a process that serves has: the one place that looks whether gevent is there."""

from __future__ import annotations

import sys

from svc.executor import Executor

__all__ = ["executor_of_process"]


def executor_of_process() -> Executor:
    """Returns a ``GeventExecutor`` in a process that gevent has patched, else one that runs all in place."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is None or not monkey.is_module_patched("threading"):
        return Executor()
    from svc_server.gevent_executor import GeventExecutor

    return GeventExecutor()
