"""Registries: where plugins put what they add, once, at boot.

Hooks add to an open one, in the name of the plugin being registered; a frozen one is only read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from svc.errors import PluginError

if TYPE_CHECKING:
    from svc.operations import DeclaredOperation, Weight

__all__ = [
    "NamedRegistry",
    "Registered",
    "Registry",
    "Route",
    "RouteRegistry",
    "kernel_routes",
    "routes_of",
]

T = TypeVar("T")
KERNEL = "svc"
"""Owner of what is the kernel's own: always enabled."""

ROOT_TEMPLATE = "/"


class Registered(Struct, Generic[T], frozen=True):
    """One thing that a plugin added."""

    name: str
    value: T
    plugin_id: str


class Registry(Generic[T]):
    """Things of one family by name, each known with the plugin that added it."""

    def __init__(self, family: str, reserved: Collection[str] = ()) -> None:
        self.family = family
        self._items: dict[str, Registered[T]] = {}
        self._reserved = frozenset(reserved)
        self._adding: str | None = None
        self._frozen = False
        self._values: Mapping[str, T] = MappingProxyType({})

    # Boot -------------------------------------------------------------------------------------------------

    def begin(self, plugin_id: str) -> None:
        """Lets a plugin add; what is added from now on is its. Called by the loader."""
        self._require_open()
        self._adding = plugin_id

    def end(self) -> None:
        """Ends what ``begin`` began."""
        self._adding = None

    def withdraw(self, plugin_id: str) -> None:
        """Takes out everything that a plugin added. Called by the loader, before the freeze."""
        self._require_open()
        self._items = {name: item for name, item in self._items.items() if item.plugin_id != plugin_id}

    def freeze(self) -> None:
        """Ends the boot: nothing can be added any more, and ``values`` is there to be looked up in."""
        self._frozen = True
        self._adding = None
        self._values = MappingProxyType({name: item.value for name, item in self._items.items()})

    def _insert(self, name: str, value: T, *, shown: str | None = None) -> None:
        self._require_open()
        shown = shown or name
        if self._adding is None:
            raise PluginError(f"The {self.family} {shown!r} was added outside of its registration hook.")
        if name in self._reserved:
            raise PluginError(f"The {self.family} {shown!r} belongs to the kernel.")
        present = self._items.get(name)
        if present is not None:
            raise PluginError(
                f"The {self.family} {shown!r} is already added by the plugin {present.plugin_id!r}.",
                duplicate=True,
            )
        self._items[name] = Registered(name, value, self._adding)

    def _owner_now(self) -> str:
        return KERNEL if self._adding is None else self._adding

    def _require_open(self) -> None:
        if self._frozen:
            raise PluginError(f"The registry of {self.family}s is frozen; things are added in its hook only.")

    # Use --------------------------------------------------------------------------------------------------

    @property
    def values(self) -> Mapping[str, T]:
        """The immutable dictionary of all things by name; empty before the freeze.

        Keep a reference to it on hot paths.
        """
        return self._values

    @property
    def frozen(self) -> bool:
        """Whether the boot is over."""
        return self._frozen

    def get(self, name: str) -> T | None:
        """The thing of that name, or None."""
        return self._values.get(name)

    def owner(self, name: str) -> str | None:
        """The id of the plugin that added the thing of that name, or None."""
        item = self._items.get(name)
        return None if item is None else item.plugin_id

    def of_plugin(self, plugin_id: str) -> tuple[Registered[T], ...]:
        """What one plugin added, in its order."""
        return tuple(item for item in self._items.values() if item.plugin_id == plugin_id)

    def __iter__(self) -> Iterator[Registered[T]]:
        return iter(tuple(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items


class NamedRegistry(Registry[T]):
    """A registry of things that say their own name, or several.

    Args:
        family: what one thing is called in messages.
        contract: class that a thing must be an instance of, or a function that checks it and returns what
            is wrong, or None when it is fine.
        names: gives the names that a thing is looked up by, the first of them being the main one.
    """

    def __init__(
        self,
        family: str,
        contract: type | Callable[[object], str | None],
        names: Callable[[T], tuple[str, ...]] | None = None,
    ) -> None:
        super().__init__(family)
        self._contract = contract
        self._names = names

    def add(self, thing: T) -> None:
        """Adds a thing under its name.

        Raises:
            PluginError: it does not follow the contract, its name is taken, or the boot is over.
        """
        problem = self._problem_with(thing)
        if problem is not None:
            raise PluginError(f"{_shown(thing)} is not a {self.family}: {problem}.")
        names = self._names(thing) if self._names is not None else (getattr(thing, "name", ""),)
        for name in names:
            if not isinstance(name, str) or not name:
                raise PluginError(f"{_shown(thing)} is not a {self.family}: its name is not a text.")
        for name in names:
            self._insert(name, thing)

    def _problem_with(self, thing: object) -> str | None:
        if isinstance(self._contract, type):
            if isinstance(thing, self._contract):
                missing = _missing_members(self._contract, thing)
                return f"it has no {missing[0]}" if missing else None
            if isinstance(thing, type):
                return "it is a class, and an instance is needed"
            return f"it is not an instance of {self._contract.__name__}"
        return self._contract(thing)


def _missing_members(contract: type, thing: object) -> list[str]:
    """The attributes that a contract declares for each of its classes, and that this one does not have."""
    declared = {name for one in contract.__mro__ for name in getattr(one, "__annotations__", {})}
    of_class = {name for name in declared if not name.startswith("_")}
    return sorted(name for name in of_class if not hasattr(thing, name))


class Route(Struct, frozen=True):
    """What is served at a Falcon URI template: operations by method, or a resource that all requests share.

    ``suffix`` takes the responders ``on_get_<suffix>``, ... instead of the plain ones. ``stated_weight`` is
    what these cost; None: nobody has said it. While its plugin is disabled in a database, the route answers
    404 there.
    """

    template: str
    resource: object
    suffix: str | None
    plugin_id: str
    operations: Mapping[str, DeclaredOperation[..., Any]] = MappingProxyType({})
    stated_weight: Weight | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """The HTTP methods that it answers, but HEAD for a GET."""
        return (*self.operations, *self.responders())

    def responders(self) -> Mapping[str, Callable[..., Any]]:
        """The responders of the route's resource by HTTP method, upper case."""
        ending = f"_{self.suffix}" if self.suffix else ""
        found: dict[str, Callable[..., Any]] = {}
        for method in HTTP_METHODS:
            responder = getattr(self.resource, f"on_{method.lower()}{ending}", None)
            if callable(responder):
                found[method] = responder
        return MappingProxyType(found)


HTTP_METHODS = (
    *("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"),
    *("PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT"),
)

RouteCheck = Callable[[Route], None]
_FIELD = re.compile(r"\{[^}:]*(:[^}]*)?\}")


class RouteRegistry(Registry[Route]):
    """The routes of all plugins. Two templates that differ only in the names of their fields are the same.

    Args:
        check: is called with each route before it is added, and raises ``PluginError`` to refuse it: the
            pipeline passes its check that every responder declares the permission it needs.
    """

    def __init__(self, check: RouteCheck | None = None) -> None:
        super().__init__("route")
        self._check = check

    def add(
        self,
        template: str,
        resource: object,
        *,
        suffix: str | None = None,
        weight: Weight | None = None,
    ) -> None:
        """Serves a resource at a URI template.

        Args:
            template: Falcon URI template, beginning with a slash. A field ``{path:path}`` takes the rest of
                the URL as a path of the database, ``{name:text}`` as a text.
            resource: an instance with responders; stateless, since all requests share it.
            suffix: selects the responders ``on_get_<suffix>``, so that one class can serve several routes.
            weight: what each of its responders costs. One that does not say it counts as ``Weight.DEAR``.

        Raises:
            PluginError: the template is taken or malformed, there is no responder, a responder declares no
                permission, or the boot is over.
        """
        if not _is_template(template):
            raise PluginError(
                f"The route {template!r} must be a text that begins with '/' and has no spaces."
            )
        if isinstance(resource, type):
            raise PluginError(
                f"The resource of the route {template!r} is a class, and an instance is needed."
            )
        route = Route(template, resource, suffix, self._owner_now(), stated_weight=weight)
        if not route.responders():
            raise PluginError(f"The resource of the route {template!r} has no responder such as on_get.")
        self._add(route)

    def add_operations(self, operations: Iterable[DeclaredOperation[..., Any]]) -> None:
        """Serves operations at their URL templates.

        Raises:
            PluginError: two of them are one method of one template, a declaration can't be served, or as
                for ``add``.
        """
        for route in routes_of(operations, self._owner_now()):
            self._add(route)

    def _add(self, route: Route) -> None:
        shape = _shape(route.template)
        if shape in _kernel_shapes():
            raise PluginError(f"The route {route.template!r} belongs to the kernel.")
        if self._check is not None:
            self._check(route)
        stem = _text_stem(route)
        for other in self.all() if stem else ():
            shared = {*route.methods} & {*other.methods}
            if shared and stem == _text_stem(other) and shape != _shape(other.template):
                both = f"{other.template!r} and {route.template!r}"
                raise PluginError(f"The routes {both} take {min(shared)} at one text.")
        self._insert(shape, route, shown=route.template)

    def all(self) -> tuple[Route, ...]:
        """Every route, in the order of registration."""
        return tuple(item.value for item in self)


def routes_of(operations: Iterable[DeclaredOperation[..., Any]], plugin_id: str) -> Iterator[Route]:
    """Yields the routes that serve operations: one for each URL template.

    Raises:
        PluginError: a template or method is none, or two operations are one method of one template.
    """
    by_template: dict[str, dict[str, DeclaredOperation[..., Any]]] = {}
    for operation in operations:
        for template in operation.templates:
            if not _is_template(template) or operation.method not in HTTP_METHODS:
                raise PluginError(f"{operation!r} has no URL template or no HTTP method.")
            methods = by_template.setdefault(template, {})
            if operation.method in methods:
                raise PluginError(f"{operation!r} and {methods[operation.method]!r} are at one URL.")
            methods[operation.method] = operation
    for template, methods in by_template.items():
        yield Route(template, None, None, plugin_id, MappingProxyType(methods))


def kernel_routes() -> tuple[Route, ...]:
    """Returns the kernel's own routes. Only that of the root page may be a plugin's instead."""
    from svc.operations import operations_of, system

    return tuple(routes_of(operations_of(system), KERNEL))


@lru_cache(maxsize=1)
def _kernel_shapes() -> frozenset[str]:
    return frozenset(_shape(route.template) for route in kernel_routes()) - {ROOT_TEMPLATE}


def _shape(template: str) -> str:
    return _FIELD.sub(lambda match: "{}", template)


def _text_stem(route: Route) -> str:
    """A route's template up to its first text, which takes the rest of a URL whole; "" without one."""
    stem, separator, _ = route.template.partition(":text}")
    return _shape(stem + separator) if separator else ""


def _is_template(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/") and not any(map(str.isspace, value))


def _shown(thing: object) -> str:
    if isinstance(thing, type):
        return f"{thing.__module__}.{thing.__qualname__}"
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    return f"{type(thing).__module__}.{name}"
