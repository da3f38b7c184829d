"""The status of an index, as people read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from svc_cli import counted, terminal_text, time_text

__all__ = ["status_lines"]

Document = dict[str, Any]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def status_lines(status: Document) -> Iterator[str]:
    """Yields a status, safe for a terminal: how it stands, what is configured, the indexes, what failed."""
    yield terminal_text(f"{status['path']}: {counted(status['documents'], 'file')} indexed")
    if status["waiting"]:
        yield f"{counted(status['waiting'], 'file')} wait to be read"
    if status.get("damage"):
        found, reason = time_text(status["damage"]["at"]), status["damage"]["reason"]
        yield terminal_text(f"damaged data were found at {found} and are made anew: {reason}")
    for job in status["jobs"]:
        since = time_text(job["since"])
        # How far work above the path is, and the figures of whole indexes, are not told to everybody.
        progress = f"{job['indexed']:,} of {job['total']:,} files, " if "total" in job else ""
        yield terminal_text(
            f"{job['reason']} of {job['path']}: {progress}since {since}"
            + (": waits, the index holds as many files as it may (maximum_documents)" * job["waits_for_room"])
        )
    yield from _section("configurations", [_directory(one) for one in status["directories"]])
    yield from _section("indexes", [_index(one) for one in status["indexes"]])
    yield from _section("files that could not be read, wholly or in part", map_failures(status["failures"]))
    yield from _section("encodings of texts that were guessed", _guesses(status.get("guessed", ())))


def _guesses(guessed: Sequence[Document]) -> list[tuple[str, ...]]:
    """A row for each encoding: how many files, and the first of them."""
    paths: dict[str, list[str]] = {}
    for one in guessed:
        paths.setdefault(one["encoding"], []).append(one["path"])
    return [
        (encoding, counted(len(files), "file"), "such as " * (len(files) > 1) + files[0])
        for encoding, files in sorted(paths.items())
    ]


def map_failures(failures: Sequence[Document]) -> list[tuple[str, ...]]:
    """Returns a row for each file that failed: its path, and why."""
    return [(failure["path"], time_text(failure["at"]), _reason(failure)) for failure in failures]


def _reason(failure: Document) -> str:
    others = {name: failure[name] for name in ("not_converted", "indexes") if failure.get(name)}
    parts = [
        f"{name.replace('_', ' ')}: {json.dumps(one, ensure_ascii=False)}" for name, one in others.items()
    ]
    return "; ".join([str(failure["error"]), *parts] if failure.get("error") else parts)


def _directory(directory: Document) -> tuple[str, ...]:
    if directory.get("problem"):
        return directory["path"], "not valid, counts as absent", str(directory["problem"])
    fields = ", ".join(f"{one['name']} ({'+'.join(one['types'])})" for one in directory.get("fields", ()))
    files = directory.get("glob") or "its own files"
    return directory["path"], "the default" if directory.get("default") else files, fields


def _index(index: Document) -> tuple[str, ...]:
    files = counted(index["documents"], "file") if "documents" in index else ""
    size = index.get("problem") or (_size(index.get("size", 0)) if "documents" in index else "")
    options = "" if index["options"] in ("", "{}", {}) else str(index["options"])
    return index["field"], index["type"], files, str(size), options


def _size(size: float) -> str:
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            return f"{size:,.0f} B" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError("the last unit takes everything")


def _section(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    shown = [[terminal_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    yield f"{title}:"
    for row in shown:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        yield "  " + "  ".join(cells).rstrip()
