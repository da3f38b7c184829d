"""What commands print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from svc.findings import Finding

__all__ = [
    "counted",
    "finding_lines",
    "print_json",
    "print_result",
    "print_table",
    "readable_bytes",
    "readable_time",
    "terminal_text",
    "time_text",
]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def print_json(value: Any) -> None:
    """Prints a value, such as an operation's answer, as indented JSON on standard output."""
    import msgspec

    plain = msgspec.to_builtins(value, enc_hook=str)
    click.echo(json.dumps(plain, indent=2, ensure_ascii=False))


def print_result(value: Any, text: str, *, as_json: bool) -> None:
    """Prints what a command did: a value as JSON, or a line for people, as a terminal may show it."""
    if as_json:
        print_json(value)
    else:
        click.echo(terminal_text(text))


def print_table(rows: Sequence[Sequence[str]], headers: Sequence[str] = ()) -> None:
    """Prints columns as wide as their widest cell, each cell as a terminal may show it.

    Above them stand ``headers``, if there are rows at all.
    """
    if not rows:
        return
    if headers:
        rows = [tuple(headers), *rows]
    shown = [[terminal_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


def counted(count: int, noun: str) -> str:
    """Returns a number with its noun: ``1 file``, ``2,000 entries``."""
    is_like_entry = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    plural = noun[:-1] + "ies" if is_like_entry else noun + "s"
    return f"{count:,} {noun if count == 1 else plural}"


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

    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"


def time_text(time_ms: int) -> str:
    """Returns a time in Unix milliseconds as local date and time to the second; ``-`` out of range."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "-"


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yields findings as people read them: what is wrong, since when, and below it what to do."""
    for finding in findings:
        since = f" Since {readable_time(finding.since_ms)}." if finding.since_ms is not None else ""
        yield terminal_text(f"{finding.source}: {finding.code}: {finding.text}{since}")
        if finding.advice:
            yield terminal_text(f"    {finding.advice}")


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
