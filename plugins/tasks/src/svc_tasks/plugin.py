"""The hooks of the plugin."""

from __future__ import annotations

__all__: list[str] = []
