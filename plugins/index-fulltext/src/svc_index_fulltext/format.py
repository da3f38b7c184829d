"""The number of the format of an index of files, told without the library where its release is known."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

__all__ = ["FORMAT"]

_LAYOUT = 2

_OF_RELEASES = {"0.27.0": 7}
"""The format of the library's files, by its release. Loaded, it takes 7 MiB of an idle server."""


def format_of(release: str | None) -> int:
    """Returns a number that changes with the files of the library, so that an upgrade makes them anew.

    Args:
        release: of the library that is installed; one that is not known here is asked, None likewise.
    """
    number = _OF_RELEASES.get(release or "")
    return _LAYOUT * 1_000 + (_asked() if number is None else number)


def _asked() -> int:
    import tantivy

    found = re.search(r"index_format v(\d+)", str(vars(tantivy)["__version__"]))
    return int(found[1]) if found else 0


def _release() -> str | None:
    try:
        return version("tantivy")
    except PackageNotFoundError:
        return None


FORMAT = format_of(_release())
