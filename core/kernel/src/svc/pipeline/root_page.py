"""``GET /``: what this is, for who opens the address of a server, unless a plugin has a page for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import falcon

from svc import __version__
from svc.operations.system import HEALTH_TEMPLATE
from svc.pipeline.caching import vary_by
from svc.pipeline.responses import send_json
from svc.plugins import Route

if TYPE_CHECKING:
    from svc.pipeline.context import SvcRequest
    from svc.pipeline.service import Service

__all__ = ["is_documented", "page", "show_root_page"]

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


def show_root_page(req: SvcRequest, resp: falcon.Response) -> None:
    """HTML for who asks for it, as browsers do, or the page that a plugin has for people; JSON for others."""
    documented = is_documented(req.context.service.plugins.registries.routes.all())
    vary_by(resp, "Accept")
    if documented:
        resp.append_link(DOCUMENTATION, "help")
    if "text/html" in req.accept.lower():
        front_page = _front_page(req.context.service)
        if front_page is not None:
            resp.status = falcon.HTTP_303
            resp.location = front_page
            return
        resp.content_type = "text/html; charset=utf-8"
        resp.set_header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
        resp.set_header("Referrer-Policy", "no-referrer")
        resp.data = page(documented)
        return
    body = {"service": "svc", "version": __version__, "health": HEALTH_TEMPLATE}
    send_json(resp, {**body, "documentation": DOCUMENTATION} if documented else body)


def _front_page(service: Service) -> str | None:
    live = service.live
    if live is None:
        return None
    descriptors = (service.plugins.descriptors.get(plugin_id) for plugin_id in live.active.current())
    return next((known.front_page for known in descriptors if known is not None and known.front_page), None)


def is_documented(routes: Iterable[Route]) -> bool:
    """Whether the documentation is among the routes."""
    return any(f"{route.template}/".startswith(DOCUMENTATION) for route in routes)


def page(documented: bool) -> bytes:
    """Returns the page for people."""
    link = _LINK if documented else _NO_LINK
    return _PAGE.format(version=__version__, health=HEALTH_TEMPLATE, documentation=link).encode("ascii")
