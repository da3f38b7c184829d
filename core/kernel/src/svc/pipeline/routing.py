"""Routes: from what plugins registered to what Falcon serves. What declares no permission is refused.

Each URI template becomes one ``BoundRoute`` that knows, for every method, whose responder answers and what it
needs. A GET answers HEAD too. A template that ends in ``/{path:path}`` also serves its stem, as the empty
path. Where a fixed template lies inside such a one (``/files/query`` in ``/files/{path:path}``), methods that
only the latter has reach it, so that no file is hidden by a route.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import falcon

from svc.errors import PluginError
from svc.pipeline.declarations import Access, AccessKind, access_of, takes_query_token
from svc.plugins.registry import Route

__all__ = [
    "HEALTH_TEMPLATE",
    "KERNEL_PLUGIN",
    "BoundRoute",
    "Endpoint",
    "add_routes",
    "bind_routes",
    "check_route",
]

HEALTH_TEMPLATE = "/system/health"
"""The one route that answers while the database is being opened."""

KERNEL_PLUGIN = "svc"
"""Owner of the kernel's own routes: always enabled."""

_PATH_FIELD = re.compile(r"\{([^}:]+):path\}")
_FIELD = re.compile(r"\{([^}:]+)(?::[^}]*)?\}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one route, with the template fields that hold paths.

    ``prefix``, of an endpoint that serves another template's URL, is what stands before its path there. One
    of the kernel is always there, whatever plugins are.
    """

    plugin_id: str
    access: Access
    path_fields: tuple[str, ...]
    responder: Callable[..., None]
    query_token: bool = False
    prefix: str | None = None
    is_public: bool = field(init=False)
    is_of_kernel: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_public", self.access.kind is AccessKind.PUBLIC)
        object.__setattr__(self, "is_of_kernel", self.plugin_id == KERNEL_PLUGIN)


class BoundRoute:
    """The resource that Falcon gets for one URI template. Its responders are those of the endpoints."""

    def __init__(self, template: str, endpoints: Mapping[str, Endpoint]) -> None:
        self.template = template
        self.endpoints = dict(endpoints)
        self.answers_early = template == HEALTH_TEMPLATE
        self.allowed: tuple[str, ...] = ()

    def complete(self) -> None:
        """Gives HEAD to every GET, and puts the responders where Falcon looks for them."""
        if "GET" in self.endpoints:
            self.endpoints.setdefault("HEAD", self.endpoints["GET"])
        self.allowed = (*sorted({*self.endpoints, "OPTIONS"}),)
        for method, endpoint in self.endpoints.items():
            setattr(self, f"on_{method.lower()}", endpoint.responder)

    def share_methods(self, other: BoundRoute, prefix: str) -> None:
        """Gives ``other``, a template inside this one, the methods that it lacks."""
        for method, endpoint in self.endpoints.items():
            if len(endpoint.path_fields) == 1:
                other.endpoints.setdefault(method, replace(endpoint, prefix=prefix))


def check_route(route: Route) -> None:
    """Refuses a route whose responders declare nothing, or a path field that it has not."""
    _endpoints_of(route)


def bind_routes(routes: Iterable[Route]) -> list[BoundRoute]:
    """Returns the routes as Falcon serves them."""
    bound: dict[str, BoundRoute] = {}
    for route in routes:
        endpoints = _endpoints_of(route)
        present = bound.get(route.template)
        if present is None:
            bound[route.template] = BoundRoute(route.template, endpoints)
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


def _endpoints_of(route: Route) -> dict[str, Endpoint]:
    path_fields = tuple(_PATH_FIELD.findall(route.template))
    endpoints: dict[str, Endpoint] = {}
    for method, responder in route.responders().items():
        where = f"The responder for {method} {route.template}"
        access = access_of(responder)
        if access is None:
            raise PluginError(f"{where} declares no permission (svc.pipeline.requires and its like).")
        if access.kind in (AccessKind.ALL, AccessKind.ANY) and access.path_field not in path_fields:
            raise PluginError(
                f"{where} needs the path field {{{access.path_field}:path}}; the route lacks it."
            )
        endpoints[method] = Endpoint(
            route.plugin_id, access, path_fields, responder, takes_query_token(responder)
        )
    return endpoints


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
