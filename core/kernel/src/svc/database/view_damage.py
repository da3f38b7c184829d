"""What is remembered of damage in a view's data, so that every process can tell of it for a while."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["Damage", "note_damage", "read_damage"]

_logger = logging.getLogger(__name__)

_NAME = "damage"
_TOLD_MS = 3_600_000
_MOST_CHARACTERS = 500


class Damage(NamedTuple):
    """That data of a view were damaged, and were made anew, or begin to be."""

    at_ms: int
    reason: str


def note_damage(directory: Path, name: str, reason: str) -> None:
    """Logs damage, and notes it beside the data."""
    reason = " ".join(reason.split())[:_MOST_CHARACTERS]
    _logger.error("data of the view %s are damaged and are made anew: %s", name, reason)
    temporary = directory / f"{_NAME}.new"
    try:
        temporary.write_text(f"{time.time_ns() // 1_000_000} {reason}", encoding="utf-8")
        os.replace(temporary, directory / _NAME)
    except OSError as error:
        _logger.warning("that damage was found could not be noted: %s", error)


def read_damage(directory: Path) -> Damage | None:
    """Returns the last damage that was noted within the last hour, or None."""
    try:
        at, _, reason = (directory / _NAME).read_text(encoding="utf-8", errors="replace").partition(" ")
        damage = Damage(int(at), reason)
    except (OSError, ValueError):
        return None
    return damage if time.time_ns() // 1_000_000 - damage.at_ms < _TOLD_MS else None
