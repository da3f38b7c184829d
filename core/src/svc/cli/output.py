"""What commands print."""

from __future__ import annotations

import json
from typing import Any

import click

__all__ = ["print_json", "readable_bytes", "readable_time", "terminal_text", "time_text"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def print_json(value: Any) -> None:
    """Prints a value as indented JSON on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def readable_bytes(size: int) -> str:
    """Returns a size for people: ``1.5 MiB``."""
    amount = float(size)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{size} B"


def readable_time(time_ms: int | None) -> str:
    """Returns a time in Unix milliseconds for people, in UTC; ``-`` for None."""
    if time_ms is None:
        return "-"
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def time_text(time_ms: int) -> str:
    """Returns a time in Unix milliseconds as local date and time to the second; ``-`` out of range."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "-"


def terminal_text(text: str, *, keep_tabs: bool = False) -> str:
    """Returns a text as a terminal may show it: whoever stored it may have put control codes in.

    Args:
        text: any text.
        keep_tabs: leave tabs as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or (keep_tabs and one == "\t") else repr(one)[1:-1] for one in text
    )
