"""A route as Falcon serves it: for each method, whose responder answers and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from svc.operations import Access, AccessKind, DeclaredOperation
from svc.operations.system import HEALTH_TEMPLATE
from svc.plugins.registry import KERNEL

__all__ = ["BoundRoute", "Endpoint"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one route, with the template fields that hold paths.

    ``template`` is that of the route. ``prefix``, of an endpoint that serves another template's URL, is what
    stands before its path there. One of the kernel is always there, whatever plugins are.
    """

    plugin_id: str
    access: Access
    path_fields: tuple[str, ...]
    responder: Callable[..., None]
    query_token: bool = False
    operation: DeclaredOperation[..., Any] | None = None
    template: str = ""
    prefix: str | None = None
    is_public: bool = field(init=False)
    is_of_kernel: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_public", self.access.kind is AccessKind.PUBLIC)
        object.__setattr__(self, "is_of_kernel", self.plugin_id == KERNEL)


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
