"""The contract of task types, as tests: ``from svc_tasks.testing import TaskTypeContract``."""

from __future__ import annotations

from svc_tasks.testing.contract import TaskTypeContract
from svc_tasks.testing.runner import TaskBench

__all__ = ["TaskBench", "TaskTypeContract"]
