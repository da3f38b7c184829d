"""What pages load: the files in the folder ``static`` of the packages that pages come from, and no others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["Asset", "find_asset"]

FOLDER = "static"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}


class Asset(NamedTuple):
    """A file that pages load."""

    content: bytes
    content_type: str
    etag: str


def find_asset(path: str, packages: Iterable[str]) -> Asset | None:
    """Returns what is at ``<package>/<file>``; None: nothing, or not of one of the packages."""
    package, _, name = path.partition("/")
    return _assets_of(package).get(name) if package in packages else None


@lru_cache(maxsize=64)
def _assets_of(package: str) -> dict[str, Asset]:
    folder = files(package).joinpath(FOLDER)
    found = {}
    for file in folder.iterdir() if folder.is_dir() else ():
        content_type = _TYPES.get(file.name.rpartition(".")[2])
        if content_type is not None:
            content = file.read_bytes()
            found[file.name] = Asset(content, content_type, hashlib.sha256(content).hexdigest())
    return found
