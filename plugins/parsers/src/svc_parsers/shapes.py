"""What several parsers share: bounds of text and tables, names of columns, archives that are no bombs."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

__all__ = [
    "MAXIMUM_CELLS",
    "MAXIMUM_TEXT",
    "bare_text",
    "built_as",
    "check_archive",
    "column_names",
    "row_of",
    "text_members",
    "without_empty",
]

MAXIMUM_TEXT = 2_500_000
"""Characters of ``text``; the rest of a longer one is left out, and ``truncated`` is true."""

MAXIMUM_CELLS = 200_000
"""Cells of all tables of a file."""

_UNSEEN_NUMBERS = (*range(0x21), *range(0x7F, 0xA1), 0xAD, *range(0x200B, 0x2010), 0x2028, 0x2029, 0xFEFF)
_UNSEEN = "".join(map(chr, _UNSEEN_NUMBERS))
_MAXIMUM_UNPACKED = 256 << 20
_MAXIMUM_MEMBERS = 10_000


def text_members(parts: Iterable[str], separator: str = "\n") -> dict[str, Any]:
    """Returns ``text``, and ``truncated`` where it is not all of it. Takes no more parts than it needs."""
    kept: list[str] = []
    left = MAXIMUM_TEXT
    for part in parts:
        if len(part) > left:
            kept.append(part[:left])
            return {"text": separator.join(kept), "truncated": True}
        kept.append(part)
        left -= len(part) + len(separator)
    return {"text": separator.join(kept)}


def bare_text(text: str) -> str:
    """Returns a text without spaces and control characters at its ends, such as the NUL that C puts there."""
    return text.strip(_UNSEEN)


def without_empty(members: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members that say something: neither None nor an empty text, list or dictionary.

    Texts are without what nobody sees at their ends.
    """
    bare = {name: bare_text(value) if isinstance(value, str) else value for name, value in members.items()}
    return {name: value for name, value in bare.items() if value not in (None, "", [], {}, ())}


def column_names(header: Sequence[Any]) -> list[str]:
    """Returns a different name for each column: ``column 3`` where there is none, ``year 2`` for a second."""
    names: list[str] = []
    used: set[str] = set()
    seen: dict[str, int] = {}
    for position, cell in enumerate(header, 1):
        base = str(cell).strip() if cell is not None else ""
        base = base or f"column {position}"
        name = base
        while name in used:
            seen[base] = seen.get(base, 1) + 1
            name = f"{base} {seen[base]}"
        used.add(name)
        names.append(name)
    return names


def row_of(names: Sequence[str], cells: Sequence[Any]) -> dict[str, Any]:
    """Returns a row by the names of its columns; cells beyond them are named by their position."""
    row = dict(zip(names, cells, strict=False))
    for position in range(len(names), len(cells)):
        row[f"column {position + 1}"] = cells[position]
    return row


@contextmanager
def built_as(kind: str) -> Iterator[None]:
    """Says of a file that lacks what a library takes for granted that it is not what it should be.

    Args:
        kind: what it should be, with an article.
    """
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError, LookupError, AssertionError) as error:
        raise ValueError(f"it is not built as {kind} is") from error
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError) as error:
        raise ValueError("a part of it is torn") from error


def check_archive(content: BinaryIO) -> None:
    """Refuses a ZIP file that would unpack to more than any office document has.

    Raises:
        ValueError: it would, or it is no ZIP file.
    """
    try:
        with zipfile.ZipFile(content) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, RuntimeError, EOFError) as error:
        raise ValueError("it is no whole ZIP file, which documents of this kind are") from error
    if len(members) > _MAXIMUM_MEMBERS:
        raise ValueError(f"its archive has more than {_MAXIMUM_MEMBERS:,} members")
    if sum(member.file_size for member in members) > _MAXIMUM_UNPACKED:
        raise ValueError(f"its archive would unpack to more than {_MAXIMUM_UNPACKED >> 20} MiB")
    content.seek(0)
