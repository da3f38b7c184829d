"""Everything of svc that a plugin may use: one module, one list.

The list is ``plugin.pyi`` beside this file, which type checkers read too. A name is imported from its home
when it is first used, so that a plugin pays only for what it uses. Errors are in ``svc.errors``.
"""

from __future__ import annotations

import os.path
import re
from importlib import import_module
from typing import Any

# Also from a zip file, and where only bytecode is installed.
_names: str = __spec__.loader.get_data(f"{os.path.splitext(__file__)[0]}.pyi").decode()  # type: ignore[union-attr]
HOMES = {name: home for home, name in re.findall(r"from (\S+) import (\w+) as ", _names)}
"""The module that each name is of."""

__all__ = sorted(HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
