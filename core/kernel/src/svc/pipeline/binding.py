"""Routes: from what plugins registered to what Falcon serves. What declares no permission is refused.

Each URI template becomes one ``BoundRoute`` that knows, for every method, whose responder answers and what it
needs. A GET answers HEAD too. A template that ends in ``/{path:path}`` also serves its stem, as the empty
path. What follows a text in a template, as in ``/forks/{name:text}/promote``, is looked for at the end of the
text. Where a fixed template lies inside such a one (``/files/query`` in ``/files/{path:path}``), methods that
only the latter has reach it, so that no file is hidden by a route.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import falcon

from svc.errors import NotFound, PluginError
from svc.operations import AccessKind, Weight, access_of
from svc.operations.access import takes_query_token
from svc.pipeline.fairness import Responder, in_turn
from svc.pipeline.operations import responder_of
from svc.pipeline.routing import BoundRoute, Endpoint
from svc.plugins import Plugins
from svc.plugins.registry import Route, kernel_routes

__all__ = ["add_routes", "all_routes", "bind_routes", "check_route", "endpoints_of"]

_PATH_FIELD = re.compile(r"\{([^}:]+):path\}")
_FIELD = re.compile(r"\{([^}:]+)(?::[^}]*)?\}")
_BEHIND_TEXT = re.compile(r"(.*\{([^}:]+):text\})(/.+)")


def all_routes(plugins: Plugins) -> tuple[Route, ...]:
    """Returns the routes of all plugins and those of the kernel that none of them serves instead."""
    added = plugins.registries.routes.all()
    taken = {route.template for route in added}
    return (*(route for route in kernel_routes() if route.template not in taken), *added)


def check_route(route: Route) -> None:
    """Refuses a route whose responders declare nothing, or a path field that it has not."""
    endpoints_of(route)


def endpoints_of(route: Route) -> dict[str, Endpoint]:
    """Returns what answers each method of a route.

    Raises:
        PluginError: a responder declares nothing, or a path field that the route has not; or an operation
            can't be served as it is declared.
    """
    path_fields = tuple(_PATH_FIELD.findall(route.template))
    endpoints: dict[str, Endpoint] = {}
    for method, operation in route.operations.items():
        responder = responder_of(operation)
        endpoints[method] = Endpoint(
            route.plugin_id,
            operation.access,
            path_fields,
            responder,
            takes_query_token(responder),
            operation,
            route.template,
        )
    for method, responder in route.responders().items():
        where = f"The responder for {method} {route.template}"
        access = access_of(responder)
        if access is None:
            raise PluginError(f"{where} declares no permission (svc.plugin.requires and its like).")
        if access.kind in (AccessKind.ALL, AccessKind.ANY) and access.path_field not in path_fields:
            raise PluginError(
                f"{where} needs the path field {{{access.path_field}:path}}; the route lacks it."
            )
        endpoints[method] = Endpoint(
            route.plugin_id,
            access,
            path_fields,
            in_turn(responder, route.stated_weight or Weight.DEAR),
            takes_query_token(responder),
            template=route.template,
        )
    return endpoints


def bind_routes(routes: Iterable[Route]) -> list[BoundRoute]:
    """Returns the routes as Falcon serves them."""
    bound: dict[str, BoundRoute] = {}
    for route in routes:
        template, endpoints = _with_rest_in_text(route.template, endpoints_of(route))
        present = bound.get(template)
        if present is None:
            bound[template] = BoundRoute(template, endpoints)
        else:
            for method, endpoint in endpoints.items():
                present.endpoints.setdefault(method, endpoint)
    _add_stems(bound)
    _share_methods(bound)
    for bound_route in bound.values():
        bound_route.complete()
    return list(bound.values())


def add_routes(app: falcon.App[Any, Any], routes: Iterable[BoundRoute]) -> None:
    """Adds bound routes to a Falcon app."""
    for route in routes:
        try:
            app.add_route(route.template, route)
        except ValueError as error:
            owner = next(iter(route.endpoints.values())).plugin_id
            raise PluginError(f"The route {route.template!r} of the plugin {owner!r}: {error}") from error


def _with_rest_in_text(template: str, endpoints: dict[str, Endpoint]) -> tuple[str, Mapping[str, Endpoint]]:
    """A template as Falcon can have it: a text takes the rest of a URL, what follows it included."""
    match = _BEHIND_TEXT.fullmatch(template)
    if match is None:
        return template, endpoints
    stem, field, rest = match.groups()

    def cut(respond: Responder) -> Responder:
        def responder(req: falcon.Request, resp: falcon.Response, **arguments: Any) -> None:
            if not arguments[field].endswith(rest):
                raise NotFound("There is no such resource.")
            respond(req, resp, **{**arguments, field: arguments[field].removesuffix(rest)})

        return responder

    return stem, {
        method: replace(endpoint, responder=cut(endpoint.responder)) for method, endpoint in endpoints.items()
    }


def _add_stems(bound: dict[str, BoundRoute]) -> None:
    for template, route in list(bound.items()):
        stem, separator, field = template.rpartition("/")
        if separator and stem and _PATH_FIELD.fullmatch(field):
            present = bound.get(stem)
            if present is None:
                bound[stem] = BoundRoute(stem, route.endpoints)
            else:
                for method, endpoint in route.endpoints.items():
                    present.endpoints.setdefault(method, endpoint)


def _share_methods(bound: Mapping[str, BoundRoute]) -> None:
    outers = sorted(
        (template for template in bound if _PATH_FIELD.fullmatch(template.rpartition("/")[2])),
        key=len,
        reverse=True,
    )
    for template, route in bound.items():
        for outer in outers:
            prefix = outer.rpartition("/")[0] + "/"
            if template != outer and not _FIELD.search(prefix) and template.startswith(prefix):
                bound[outer].share_methods(route, prefix)
                break
