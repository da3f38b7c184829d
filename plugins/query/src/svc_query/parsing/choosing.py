"""Which parser reads a file."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from fnmatch import translate

from svc.plugin import split_content_encoding
from svc_query.api import Parser

__all__ = ["choose_parser"]

_UNSPECIFIC = frozenset(
    {"", "application/octet-stream", "text/plain", "application/zip", "application/x-ole-storage"}
)
"""Types that say less than the ending of a name: what senders give that do not look, and containers."""


def choose_parser(
    parsers: Mapping[str, Parser], content_type: str | None, name: str, wanted: str | None
) -> Parser | None:
    """Returns the parser of a file; None when there is none. Costs a few microseconds.

    A parser that is asked for by name is taken whatever the file is. Otherwise the media type, without its
    parameters, decides, if it says something; then the ending of the name; then kinds such as ``text/*``. Of
    several that know the same, the first of the mapping is taken. What was stored in a content coding (gzip)
    has none: its bytes are not of the type.
    """
    if content_type is not None and split_content_encoding(content_type)[1] is not None:
        return None
    if wanted is not None:
        return parsers.get(wanted)
    media_type = "" if content_type is None else content_type.partition(";")[0].strip().lower()
    extensions = _extensions(name)
    if media_type not in _UNSPECIFIC:
        for parser in parsers.values():
            if media_type in parser.content_types:
                return parser
        return _by_pattern(parsers, media_type) or (
            None if "/" in media_type else _by_extension(parsers, extensions)
        )
    found = _by_extension(parsers, extensions)
    if found is not None or not media_type:
        return found
    for parser in parsers.values():
        if media_type in parser.content_types:
            return parser
    return _by_pattern(parsers, media_type)


def _extensions(name: str) -> tuple[str, ...]:
    """The endings of a name, the longest first: ``tar.gz`` and ``gz``. A leading dot begins no ending."""
    parts = name.lstrip(".").lower().split(".")[1:]
    return tuple(".".join(parts[start:]) for start in range(max(0, len(parts) - 2), len(parts)))


def _by_extension(parsers: Mapping[str, Parser], extensions: tuple[str, ...]) -> Parser | None:
    for extension in extensions:
        for parser in parsers.values():
            if extension in parser.extensions:
                return parser
    return None


def _by_pattern(parsers: Mapping[str, Parser], media_type: str) -> Parser | None:
    best: tuple[int, Parser] | None = None
    for parser in parsers.values():
        for length, pattern in _patterns(parser.content_types):
            if (best is None or length > best[0]) and pattern.match(media_type):
                best = length, parser
    return None if best is None else best[1]


@functools.lru_cache(maxsize=1024)
def _patterns(content_types: frozenset[str]) -> tuple[tuple[int, re.Pattern[str]], ...]:
    """The patterns among media types, with their lengths: a longer one says more."""
    return tuple((len(item), re.compile(translate(item))) for item in sorted(content_types) if "*" in item)
