"""``GET /``: what this is, for a person who opens the address of a server; until a plugin serves it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import falcon

from svc import __version__
from svc.operations.access import public
from svc.pipeline.caching import vary_by
from svc.pipeline.responses import send_json
from svc.pipeline.routing import HEALTH_TEMPLATE, KERNEL_PLUGIN
from svc.plugins import Route

if TYPE_CHECKING:
    from svc.pipeline.context import SvcRequest

__all__ = ["with_root_page"]

ROOT = "/"
DOCUMENTATION = "/docs/"

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>svc</title>
<h1>svc</h1>
<p>A database of files that keeps every version, {version}. Use it over HTTP or with the command
<code>svc</code>; <code>svc --help</code> lists what it can do.</p>
<ul>
<li>{documentation}</li>
<li><a href="{health}">Health of this server</a></li>
</ul>
</html>
"""
_LINK = f'<a href="{DOCUMENTATION}" rel="help">Documentation</a>'
_NO_LINK = "The documentation is in the folder <code>docs</code> of the sources"


class RootResource:
    """The page, or the same for programs."""

    def __init__(self, documented: bool) -> None:
        self._documented = documented
        page = _PAGE.format(
            version=__version__, health=HEALTH_TEMPLATE, documentation=_LINK if documented else _NO_LINK
        )
        self._page = page.encode("ascii")

    @public
    def on_get(self, req: SvcRequest, resp: falcon.Response) -> None:
        """HTML for who asks for it, as browsers do; JSON for all others."""
        vary_by(resp, "Accept")
        if self._documented:
            resp.append_link(DOCUMENTATION, "help")
        if "text/html" in req.accept.lower():
            resp.content_type = "text/html; charset=utf-8"
            resp.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
            resp.set_header("Referrer-Policy", "no-referrer")
            resp.data = self._page
            return
        body = {"service": "svc", "version": __version__, "health": HEALTH_TEMPLATE}
        send_json(resp, {**body, "documentation": DOCUMENTATION} if self._documented else body)


def with_root_page(routes: Iterable[Route]) -> Sequence[Route]:
    """Returns routes with one for ``/``, unless it is among them."""
    given = tuple(routes)
    if any(route.template == ROOT for route in given):
        return given
    documented = any(f"{route.template}/".startswith(DOCUMENTATION) for route in given)
    return (*given, Route(ROOT, RootResource(documented), None, KERNEL_PLUGIN))
