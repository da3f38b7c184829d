"""Families of extensions that plugins drive, declared as the kernel declares its own.

A driver lists its families in the tuple ``FAMILIES`` of its public module ``<package>.api``, next to a hook
specification for each. The kernel makes a registry for each and lets other plugins fill it; the driver reads
it through its ``PluginContext``.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct

from svc.errors import PluginError
from svc.plugins.descriptor import FAMILY_NAME
from svc.plugins.registry import NamedRegistry

if TYPE_CHECKING:
    from svc.plugins.context import PluginContext
    from svc.plugins.registries import Registries

__all__ = ["REGISTRATION_PREFIX", "Extension", "Family", "load_families"]

REGISTRATION_PREFIX = "svc_register_"
"""The name of a registration hook is this and the name of its family."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Family(Struct, Generic[T], frozen=True):
    """A kind of extension that a plugin drives.

    Attributes:
        name: lower-case words joined by underscores, in the plural: ``greeting_styles``. The hook of the
            family is ``svc_register_greeting_styles``, and its only argument has this name.
        title: what one thing of the family is called in messages: ``greeting style``.
        contract: class that a thing must be an instance of, or a function that returns what is wrong with a
            thing, or None when it is fine.
        names: gives the names that a thing is looked up by, the main one first; None takes its ``name``.

    Raises:
        PluginError: a field is not of the form described here.
    """

    name: str
    title: str
    contract: type | Callable[[object], str | None]
    names: Callable[[T], tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        if not _is_line(self.name) or not re.fullmatch(FAMILY_NAME, self.name):
            raise PluginError(f"The family {self.name!r} is not lower-case words joined by underscores.")
        if not _is_line(self.title):
            raise PluginError(f"The title of the family {self.name!r} must be one line of text.")
        if not callable(self.contract):
            raise PluginError(f"The contract of the family {self.name!r} must be a class or a function.")
        if self.names is not None and not callable(self.names):
            raise PluginError(f"The names of the family {self.name!r} must be a function.")

    @property
    def hook(self) -> str:
        """Name of the hook that adds to the family."""
        return REGISTRATION_PREFIX + self.name

    def make_registry(self) -> NamedRegistry[T]:
        """Returns an empty registry for things of this family."""
        return NamedRegistry(self.title, self.contract, self.names)


class Extension(Struct, Generic[T_co], frozen=True):
    """A thing of a family, as its driver finds it.

    Attributes:
        value: the thing itself, which one process shares among its databases.
        context: the plugin that added it, with the settings that it has in this database.
    """

    value: T_co
    context: PluginContext


class ExtensionSource(Protocol):
    """Knows which extensions are in use for a database."""

    def extensions_of(self, driver_id: str, family: Family[T]) -> Mapping[str, Extension[T]]:
        """See ``PluginContext.extensions``."""

    def is_current(self, plugin_id: str, configuration: Any) -> bool:
        """See ``PluginContext.is_current``; a command reads settings once, and keeps to them."""
        return True

    def is_broken(self, plugin_id: str) -> bool:
        """See ``PluginContext.is_broken``."""
        return False


class _NoExtensions(ExtensionSource):
    def extensions_of(self, driver_id: str, family: Family[T]) -> Mapping[str, Extension[T]]:
        raise PluginError(
            f"The plugin {driver_id!r} asks for its family {family.name!r}, "
            "which is there from svc_start on, in processes that serve the database."
        )


NO_EXTENSIONS: ExtensionSource = _NoExtensions()


def find_extensions(
    registries: Registries, contexts: Mapping[str, PluginContext]
) -> dict[str, Mapping[str, Extension[Any]]]:
    """Returns what plugins that have a context have added to the families of others, by family and name."""
    return {
        family: MappingProxyType(
            {
                item.name: Extension(item.value, contexts[item.plugin_id])
                for item in driven.registry
                if item.plugin_id in contexts
            }
        )
        for family, driven in registries.driven.items()
    }


def require_driver(registries: Registries, driver_id: str, family: Family[Any]) -> None:
    """Raises PluginError if a plugin asks for another's family, or one that this process has not loaded."""
    driven = registries.driven.get(family.name)
    if driven is None:
        raise PluginError(f"The family {family.name!r} was not loaded in this process.", plugin=driver_id)
    if driven.driver != driver_id:
        raise PluginError(
            f"The plugin {driver_id!r} asks for the family {family.name!r}, and {driven.driver!r} drives it.",
            plugin=driver_id,
        )


def load_families(module_name: str) -> tuple[ModuleType, tuple[Family[Any], ...]]:
    """Imports the module of a driver's families, and checks it; returns both.

    Its functions marked with ``@hookspec`` are one for each family. Raises PluginError where the module is
    not of that form; whatever else its import raises passes.
    """
    module = importlib.import_module(module_name)
    families = getattr(module, "FAMILIES", None)
    if not isinstance(families, tuple) or not families or not all(map(_is_family, families)):
        raise PluginError(f"{module_name}.FAMILIES must be a tuple of svc.plugins.Family, not empty.")
    names = [family.name for family in families]
    if len(set(names)) != len(names):
        raise PluginError(f"{module_name}.FAMILIES names a family twice.")
    specifications = dict(_specifications(module))
    for family in families:
        specification = specifications.pop(family.hook, None)
        if specification is None:
            raise PluginError(f"{module_name} has no function {family.hook} marked with @hookspec.")
        _check_specification(module_name, family, specification)
    if specifications:
        raise PluginError(
            f"{module_name} specifies {', '.join(sorted(specifications))}, which no family of it has."
        )
    return module, families


def _check_specification(module_name: str, family: Family[Any], specification: Callable[..., Any]) -> None:
    options = specification.svc_spec  # type: ignore[attr-defined]
    if options["firstresult"] or options["historic"]:
        raise PluginError(f"{module_name}.{family.hook} must be marked with @hookspec alone.")
    if [*inspect.signature(specification).parameters] != [family.name]:
        raise PluginError(f"{module_name}.{family.hook} must take one argument, {family.name!r}.")


def _specifications(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in vars(module).items():
        if inspect.isroutine(value) and hasattr(value, "svc_spec"):
            yield name, value


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value


def _is_family(value: object) -> bool:
    return isinstance(value, Family)
