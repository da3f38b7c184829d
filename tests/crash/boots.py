"""Another start of the machine, as the kernel sees it."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

__all__ = ["another_boot"]


@contextmanager
def another_boot() -> Iterator[None]:
    """Inside the block every module of svc is told that the machine was started anew."""
    name = uuid.uuid4().bytes
    with ExitStack() as stack:
        for module_name, module in list(sys.modules.items()):
            if module_name.startswith("svc.") and "boot_id" in vars(module):
                stack.enter_context(mock.patch.object(module, "boot_id", return_value=name))
        yield
