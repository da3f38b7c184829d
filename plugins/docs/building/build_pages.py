"""Builds the pages of docs/ into the package svc_docs; a warning of Sphinx is an error.

    uv run python plugins/docs/building/build_pages.py [--if-changed]

It writes all that Sphinx makes, the Markdown sources, the licences of what the theme brings, and
``manifest.json``, which lists them (``svc_docs.models.Manifest``). They take the place of those built before
once everything is there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

PROJECT = Path(__file__).resolve().parents[1]
ROOT = PROJECT.parents[1]
SOURCES = ROOT / "docs"
PAGES = PROJECT / "src" / "svc_docs" / "pages"
MANIFEST = PAGES / "manifest.json"

_DOCTREES = PROJECT / "build" / "doctrees"
_NOT_SERVED = {".buildinfo", ".doctrees", "_sources"}
_SHORTEST_SUMMARY, _LONGEST_SUMMARY = 60, 200
_INDEX = "index"
_NOTE_PLACE = '<article role="main" id="furo-main-content">'
"""Where the server puts a note; as in ``svc_docs.assets``."""


def is_checkout() -> bool:
    """Whether this stands in a checkout, with the sources of the pages."""
    return (SOURCES / "conf.py").is_file() and ROOT / "plugins" / PROJECT.name == PROJECT


def is_current() -> bool:
    """Whether the pages were built from the present sources."""
    return MANIFEST.is_file() and json.loads(MANIFEST.read_bytes())["sources"] == digest_of_sources()


def digest_of_sources() -> str:
    """A digest of everything that pages are built from."""
    made = {"_build", "__pycache__", "reference"}
    files = [path for path in SOURCES.rglob("*") if path.is_file() and not made.intersection(path.parts)]
    digest = hashlib.sha256()
    for path in sorted([*files, *_published(), ROOT / "setup.cfg", *Path(__file__).parent.glob("*.py")]):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _published() -> list[Path]:
    """The modules whose docstrings become pages."""
    sys.path.insert(0, str(SOURCES))
    try:
        from reference_pages import sources
    finally:
        sys.path.remove(str(SOURCES))
    return sources()


def build() -> None:
    """Builds the pages.

    Raises:
        SystemExit: Sphinx has warned, or has made something that can't be served.
    """
    sources = digest_of_sources()
    PAGES.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pages-", dir=PAGES.parent) as name:
        made = Path(name) / "pages"
        app = _run_sphinx(made)
        _tidy(made)
        _copy_sources(made)
        _copy_licences(made)
        manifest = _manifest(made, app.env)
        (made / MANIFEST.name).write_text(json.dumps({"sources": sources, **manifest}, indent=1))
        if PAGES.exists():
            PAGES.rename(Path(name) / "before")
        made.rename(PAGES)


def _run_sphinx(target: Path) -> Sphinx:
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    jobs = min(os.cpu_count() or 1, 4)
    with patch_docutils(SOURCES), docutils_namespace():
        app = Sphinx(
            SOURCES, SOURCES, target, _DOCTREES, "html", status=None, warningiserror=True, parallel=jobs
        )
        app.build()
    if app.statuscode:
        raise SystemExit("Sphinx has warned: the pages are not built.")
    return app


def _tidy(made: Path) -> None:
    for name in _NOT_SERVED:
        path = made / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for path in made.rglob("*.map"):
        path.unlink()


def _copy_sources(made: Path) -> None:
    for path in SOURCES.rglob("*.md"):
        target = made / path.relative_to(SOURCES)
        if target.with_suffix(".html").is_file():
            shutil.copyfile(path, target)


def _copy_licences(made: Path) -> None:
    """The theme's and Sphinx's own style sheets and scripts are part of the pages."""
    for name in ("furo", "sphinx"):
        found = [file for file in distribution(name).files or () if file.name.startswith("LICENSE")]
        licence = next(file for file in found if "licenses" in file.parts)
        (made / "_static" / f"LICENSE.{name}.txt").write_bytes(licence.locate().read_bytes())


def _manifest(made: Path, environment: BuildEnvironment) -> dict[str, Any]:
    plugins = {name: str(data["plugin"]) for name, data in environment.metadata.items() if "plugin" in data}
    inline, files = _Inline(), {}
    for path in sorted(path for path in made.rglob("*") if path.is_file()):
        name, content = path.relative_to(made).as_posix(), path.read_bytes()
        page, _, kind = name.rpartition(".")
        files[name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        if kind == "html":
            text = content.decode()
            inline.read(text)
            if page in plugins:
                if text.count(_NOTE_PLACE) != 1:
                    raise SystemExit(f"{name} has no place for a note: has the theme changed?")
                files[name]["plugin"] = plugins[page]
    return {
        "scripts": sorted(inline.scripts),
        "styles": sorted(inline.styles),
        "style_attributes": sorted(inline.style_attributes),
        "sections": list(_sections(environment, plugins)),
        "files": files,
    }


class _Inline(HTMLParser):
    """Finds the hashes by which a Content-Security-Policy allows what stands within pages."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: set[str] = set()
        self.styles: set[str] = set()
        self.style_attributes: set[str] = set()
        self._into: set[str] | None = None
        self._text = ""

    def read(self, page: str) -> None:
        self.reset()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        events = [name for name in given if name.startswith("on")]
        if events:
            raise SystemExit(f"A page has the attribute {events[0]}, which no strict policy allows.")
        if given.get("style"):
            self.style_attributes.add(_hash(given["style"] or ""))
        if tag == "style" or (tag == "script" and "src" not in given):
            self._into, self._text = (self.styles if tag == "style" else self.scripts), ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("style", "script") and self._into is not None:
            self._into.add(_hash(self._text))
            self._into = None


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _sections(environment: BuildEnvironment, plugins: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The pages in the order of the navigation, by the captions of the first page's lists."""
    from sphinx import addnodes

    for tree in environment.get_doctree(_INDEX).findall(addnodes.toctree):
        pages = []
        names = (found for first in tree["includefiles"] for found in _with_pages_below(environment, first))
        for name in dict.fromkeys(names):
            title = environment.titles[name].astext()
            page = {"name": name, "title": title, "summary": _summary(environment, name)}
            pages.append(page | ({"plugin": plugins[name]} if name in plugins else {}))
        yield {"title": tree["caption"], "pages": pages}


def _with_pages_below(environment: BuildEnvironment, name: str) -> Iterator[str]:
    yield name
    for below in environment.toctree_includes.get(name, ()):
        yield from _with_pages_below(environment, below)


def _summary(environment: BuildEnvironment, name: str) -> str:
    """The first sentence of a page, or the first few if they are short."""
    from docutils import nodes

    text = next((node.astext() for node in environment.get_doctree(name).findall(nodes.paragraph)), "")
    first, *others = re.split(r"(?<=[^.][.?])\s", " ".join(text.split()))
    while others and len(first) < _SHORTEST_SUMMARY:
        first += f" {others.pop(0)}"
    text = first.rstrip(".:")
    return text if len(text) <= _LONGEST_SUMMARY else text[:_LONGEST_SUMMARY].rpartition(" ")[0] + " …"


if __name__ == "__main__":
    if "--if-changed" not in sys.argv[1:] or not is_current():
        build()
