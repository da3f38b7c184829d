"""What the packaging writes about the pages that it has built: ``manifest.json`` beside them."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["BuiltFile", "Manifest", "Page", "Section"]


class BuiltFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file; ``plugin`` is the id of the plugin that a page is about, if it is about one."""

    size: int
    sha256: str
    plugin: str | None = None


class Page(Struct, frozen=True, forbid_unknown_fields=True):
    """A page in the list of all. ``name`` has no suffix; ``summary`` is its first sentence."""

    name: str
    title: str
    summary: str
    plugin: str | None = None


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """Pages under one caption."""

    title: str
    pages: list[Page]


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """All files that were built, and nothing else is served.

    Attributes:
        sources: digest of what they were built from.
        scripts, styles, style_attributes: hashes of what stands within the pages, for their policy.
        sections: the pages in their order.
        files: by the path below ``/docs/``.
    """

    sources: str
    scripts: list[str]
    styles: list[str]
    style_attributes: list[str]
    sections: list[Section]
    files: dict[str, BuiltFile]
