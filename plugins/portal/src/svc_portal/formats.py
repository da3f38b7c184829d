"""Numbers, sizes and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup

__all__ = ["bytes_text", "number_text", "time_text"]

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def bytes_text(size: int | None) -> str:
    """Returns a number of bytes, such as ``1.5 MiB``; nothing for None."""
    if size is None:
        return ""
    if size == 1:
        return "1 byte"
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size} bytes" if not unit else f"{value:.1f} {_UNITS[unit]}"


def number_text(value: int | None) -> str:
    """Returns a number with its thousands apart."""
    return "" if value is None else f"{value:,}"


def time_text(time_ms: int | None) -> Markup | str:
    """Returns a time as an element ``time``, in UTC to the second; a script may show it in local time."""
    if time_ms is None:
        return ""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"), f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    )
