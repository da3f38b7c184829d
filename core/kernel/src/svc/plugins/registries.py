"""One registry for each family, together: what the registration hooks fill, and drivers read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from svc.errors import PluginError
from svc.plugins.contracts import AuthMode, ContentCheck, HealthCheck, RequestObserver
from svc.plugins.families import Family
from svc.plugins.registry import NamedRegistry, Registry, RouteCheck, RouteRegistry

if TYPE_CHECKING:
    from svc.database import View
    from svc.log import StorageBackend

__all__ = ["DrivenFamily", "Registries", "make_registries"]


class DrivenFamily(Struct, frozen=True):
    """A family that a plugin drives."""

    driver: str
    registry: NamedRegistry[Any]


class Registries(Struct, frozen=True):
    """The registries of all families: one attribute for each that the kernel drives, and those of plugins."""

    routes: RouteRegistry = field(default_factory=RouteRegistry)
    auth_modes: NamedRegistry[AuthMode] = field(
        default_factory=lambda: NamedRegistry("auth mode", AuthMode, lambda mode: (mode.name, *mode.aliases))
    )
    views: NamedRegistry[View] = field(default_factory=lambda: NamedRegistry("view", _problem_with_view))
    content_checks: NamedRegistry[ContentCheck] = field(
        default_factory=lambda: NamedRegistry("content check", _problem_with_content_check)
    )
    storage_backends: NamedRegistry[StorageBackend] = field(
        default_factory=lambda: NamedRegistry(
            "storage backend", _problem_with_storage_backend, lambda backend: (backend.scheme,)
        )
    )
    health_checks: NamedRegistry[HealthCheck] = field(
        default_factory=lambda: NamedRegistry("health check", HealthCheck)
    )
    request_observers: NamedRegistry[RequestObserver] = field(
        default_factory=lambda: NamedRegistry("request observer", RequestObserver)
    )
    _driven: dict[str, DrivenFamily] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Registry[Any]]:
        return iter(self.named().values())

    @property
    def driven(self) -> Mapping[str, DrivenFamily]:
        """The families that plugins drive, by name."""
        return MappingProxyType(self._driven)

    def named(self) -> dict[str, Registry[Any]]:
        """The registries by the name of their hook's argument: ``routes``, ``auth_modes``, ..."""
        return {
            **{name: getattr(self, name) for name in self.__struct_fields__ if name != "_driven"},
            **{name: driven.registry for name, driven in self._driven.items()},
        }

    def add_families(self, driver: str, families: tuple[Family[Any], ...]) -> None:
        """Makes room for the families of a plugin, all or none; not for a taken name, or after the boot."""
        if self.routes.frozen:
            raise PluginError("Families are added at boot only.")
        known = self.named()
        for family in families:
            if family.name in self._driven:
                other = self._driven[family.name].driver
                raise PluginError(
                    f"The family {family.name!r} is already driven by the plugin {other!r}.", duplicate=True
                )
            if family.name in known:
                raise PluginError(f"The family {family.name!r} belongs to the kernel.", duplicate=True)
        self._driven.update({item.name: DrivenFamily(driver, item.make_registry()) for item in families})

    def drop_families(self, driver: str) -> None:
        """Takes out the families of a plugin that is out of use, with what others have added to them."""
        for name in [name for name, driven in self._driven.items() if driven.driver == driver]:
            del self._driven[name]

    @contextmanager
    def adding(self, plugin_id: str) -> Iterator[None]:
        """Within this, what is added belongs to a plugin; if it raises, nothing of the plugin stays."""
        for registry in self:
            registry.begin(plugin_id)
        try:
            yield
        except BaseException:
            self.withdraw(plugin_id)
            raise
        finally:
            for registry in self:
                registry.end()

    def withdraw(self, plugin_id: str) -> None:
        """Takes out everything that a plugin added, in every family."""
        for registry in self:
            registry.withdraw(plugin_id)

    def freeze(self) -> None:
        """Ends the boot of every family."""
        for registry in self:
            registry.freeze()


def make_registries(check_route: RouteCheck | None = None) -> Registries:
    """Returns empty, open registries."""
    return Registries(routes=RouteRegistry(check_route))


def _problem_with_view(thing: object) -> str | None:
    from svc.database import View  # here, because who adds no view needs no database

    if isinstance(thing, type):
        return "it is a class, and an instance is needed"
    if not isinstance(thing, View):
        return "it is not an instance of View"
    if not isinstance(getattr(thing, "format", None), int):
        return "it has no format number"
    if type(thing).apply is View.apply and type(thing).begin is View.begin:
        return "it has no method apply, and no method begin"
    return None


def _problem_with_content_check(thing: object) -> str | None:
    if isinstance(thing, type):
        return "it is a class, and an instance is needed"
    if not isinstance(thing, ContentCheck):
        return "it is not an instance of ContentCheck"
    suffixes = getattr(thing, "suffixes", None)
    if not isinstance(suffixes, tuple) or not suffixes or not all(map(_is_suffix, suffixes)):
        return "its suffixes are not tuples of the last segments of paths"
    size = getattr(thing, "maximum_size", None)
    return None if isinstance(size, int) and size >= 0 else "it has no maximum_size"


def _is_suffix(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and bool(value)
        and all(isinstance(segment, str) and segment and "/" not in segment for segment in value)
    )


def _problem_with_storage_backend(thing: object) -> str | None:
    if isinstance(thing, type):
        return "it is a class, and an instance is needed"
    scheme = getattr(thing, "scheme", None)
    if not isinstance(scheme, str):
        return "it has no scheme"
    if scheme in _SCHEMES_TAKEN:
        return f"{scheme}:// means something else already"
    if not isinstance(getattr(thing, "is_shared", None), bool):
        return "it does not say by is_shared whether other processes find the same log"
    missing = [name for name in ("open", "locate") if not callable(getattr(thing, name, None))]
    return f"it has no method {missing[0]}" if missing else None


_SCHEMES_TAKEN = ("file", "http", "https")
