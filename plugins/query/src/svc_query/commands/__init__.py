"""``svc query``, ``svc search`` and ``svc index``."""

from __future__ import annotations

__all__: list[str] = []
