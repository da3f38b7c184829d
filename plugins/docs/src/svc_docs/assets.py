"""What there is to serve, by its path below ``/docs/``: files of the package, and pages if they are built.

A path is looked up in these two lists and in no directory, so that none leads anywhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from svc_docs.models import Manifest

__all__ = ["NOTE_PLACE", "PAGES", "Asset", "asset_note", "find_asset", "read_manifest"]

PAGES = Path(__file__).with_name("pages")
"""Where the pages are put when they are built."""
MANIFEST = "manifest.json"
NOTE_PLACE = b'<article role="main" id="furo-main-content">'
"""The beginning of what a page says; a note comes behind it."""

_STATIC = Path(__file__).with_name("static")
_FRONT_PAGES = ("index.html", "unbuilt.html")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    # Browsers show plain text, and save Markdown.
    ".md": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".inv": "application/octet-stream",
}
_POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self'{styles}; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action {forms}; frame-ancestors 'none'"
)
_OWN_POLICY = _POLICY.format(scripts="", styles="", forms="'none'")


class Asset(NamedTuple):
    """A file to serve; ``policy`` is set for pages, ``plugin`` for those about one plugin."""

    file: Path
    size: int
    etag: str
    content_type: str
    policy: str | None = None
    plugin: str | None = None


def find_asset(path: str) -> Asset | None:
    """Returns what is at a path below ``/docs/``; None: nothing. The empty path is the front page."""
    manifest = read_manifest()
    if not path:
        path = _FRONT_PAGES[manifest is None]
    own = _own_assets().get(path)
    if own is not None or manifest is None:
        return own
    if path.endswith("/"):
        path += "index.html"
    built = manifest.files.get(path)
    if built is None:
        return None
    policy = _page_policy(manifest) if path.endswith(".html") else None
    return Asset(PAGES / path, built.size, built.sha256, media_type(path), policy, built.plugin)


def media_type(path: str) -> str:
    """Returns the media type of a file; raises KeyError for a kind that no page needs."""
    suffix = Path(path).suffix
    return _TYPES[suffix] if suffix else _TYPES[".txt"]


def asset_note(plugin_id: str) -> bytes:
    """Returns what a page says on top where its plugin is not in use."""
    return (
        '\n<div class="admonition warning" role="note"><p class="admonition-title">Not on this server</p>'
        f"<p>This page is about the plugin <code>{plugin_id}</code>, which this server's database does not "
        f"use. <code>svc plugins enable {plugin_id}</code> enables it.</p></div>"
    ).encode()


def read_manifest() -> Manifest | None:
    """Returns what was built; None where nothing was. What is built anew counts at once."""
    path = PAGES / MANIFEST
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return _parse_manifest(path, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=1)
def _parse_manifest(path: Path, _mtime_ns: int, _inode: int) -> Manifest:
    return msgspec.json.decode(path.read_bytes(), type=Manifest)


@lru_cache(maxsize=1)
def _own_assets() -> dict[str, Asset]:
    found = {}
    for file in sorted(_STATIC.rglob("*")):
        if file.is_file():
            path, content = file.relative_to(_STATIC).as_posix(), file.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            policy = _OWN_POLICY if file.suffix == ".html" else None
            found[path] = Asset(file, len(content), digest, media_type(path), policy)
    return found


def _page_policy(manifest: Manifest) -> str:
    """Allows what stands within the pages, by its hash, and the search form."""
    within = [*manifest.styles, *(["unsafe-hashes"] if manifest.style_attributes else [])]
    return _POLICY.format(
        scripts=_sources(manifest.scripts),
        styles=_sources([*within, *manifest.style_attributes]),
        forms="'self'",
    )


def _sources(names: Iterable[str]) -> str:
    return "".join(f" '{name}'" for name in names)
