"""The list of pages in the form of https://llmstxt.org: what programs read first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from svc_docs.models import Manifest, Page

__all__ = ["page_list"]

_HEAD = """\
# svc

> svc is a database of files that keeps every version. Files are read and written over HTTP below `/files/`; \
each write returns the hash of the version that it made, and every version stays readable.

Pages are linked as Markdown; `.html` instead of `.md` is the same page for people. Begin with SKILL.md: \
it is short, and enough for most work.

## This server

- [SKILL.md](/docs/SKILL.md): a quick start for automated agents, with all that one needs to use a server
- [OpenAPI](/docs/openapi.json): every operation of this server, with parameters, bodies, answers and errors
- [Health](/system/health): whether the server is well, and its version
"""
_TITLES = {"Project": "Optional"}
"""What may be left out where a short context is needed has that title in this form."""
_NOT_BUILT = "\nThe other pages were not built where this server was installed from.\n"


def page_list(manifest: Manifest | None, is_enabled: Callable[[str], bool]) -> str:
    """Returns the list.

    Args:
        manifest: the pages; None where they were not built.
        is_enabled: tells whether a plugin is in use on this server.
    """
    if manifest is None:
        return _HEAD + _NOT_BUILT
    return _HEAD + "".join(_sections(manifest, is_enabled))


def _sections(manifest: Manifest, is_enabled: Callable[[str], bool]) -> Iterator[str]:
    for section in manifest.sections:
        yield f"\n## {_TITLES.get(section.title, section.title)}\n\n"
        for page in section.pages:
            yield f"- [{page.title}](/docs/{page.name}.md): {page.summary}{_note(page, is_enabled)}\n"


def _note(page: Page, is_enabled: Callable[[str], bool]) -> str:
    if page.plugin is None or is_enabled(page.plugin):
        return ""
    return f" (this server does not use its plugin {page.plugin})"
