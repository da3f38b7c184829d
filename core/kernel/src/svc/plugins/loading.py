"""The boot of the plugin framework: from installed distributions to frozen registries.

What goes wrong with one plugin is a ``PluginProblem``: what it had registered is withdrawn, others go on.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import logging
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

import pluggy

from svc.errors import PluginError, PluginMissing, SvcError
from svc.findings import describe_error
from svc.plugins import hookspecs
from svc.plugins.claims import Claims
from svc.plugins.descriptor import API_VERSION, PluginDescriptor
from svc.plugins.discovery import (
    InstalledPlugin,
    PluginProblem,
    ProblemKind,
    find_installed,
    find_plugin_set,
)
from svc.plugins.families import REGISTRATION_PREFIX, load_families
from svc.plugins.hook_check import KnownFamilies, check_implementation
from svc.plugins.registries import Registries, make_registries
from svc.plugins.registry import RouteCheck
from svc.plugins.steps import plugin_step
from svc.redaction import text_of

__all__ = ["Plugins", "load_additions", "load_descriptors", "load_plugins"]

logger = logging.getLogger("svc.plugins")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Plugins:
    """The outcome of the boot: frozen registries, and everything known about the plugins. Immutable.

    Attributes:
        installed: every installed plugin by id; ids that several distributions claim are not among them.
        allowed: the ids that the deployment allows, or None for all installed ones.
        descriptors: the descriptors of the plugins in use, by id, in the order of registration.
        hooks: for each plugin in use, its implementations of lifecycle hooks.
        auth_modes: names of auth modes by the plugin that declares them, also where that is out of use.
        read: every descriptor that could be read, also of plugins that are out of use.
        overrides: settings of this deployment, by plugin id, which come before those in a database.
    """

    registries: Registries
    installed: Mapping[str, InstalledPlugin]
    allowed: tuple[str, ...] | None
    default_set: tuple[str, ...]
    descriptors: Mapping[str, PluginDescriptor]
    problems: tuple[PluginProblem, ...]
    hooks: Mapping[str, Mapping[str, Callable[..., Any]]]
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    auth_modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    read: Mapping[str, PluginDescriptor] = field(default_factory=dict)
    enabled_cache: WeakKeyDictionary[Any, Any] = field(default_factory=WeakKeyDictionary, repr=False)

    def is_allowed(self, plugin_id: str) -> bool:
        """Whether the deployment lets the plugin run."""
        return self.allowed is None or plugin_id in self.allowed

    def problem(self, plugin_id: str) -> PluginProblem | None:
        """The first problem of a plugin, or None."""
        return next((problem for problem in self.problems if problem.plugin_id == plugin_id), None)

    def require(self, plugin_id: str, purpose: str | None = None) -> PluginDescriptor:
        """Returns the descriptor of a plugin that must be in use here; PluginMissing says why it is not."""
        descriptor = self.descriptors.get(plugin_id)
        if descriptor is not None:
            return descriptor
        subject = (
            f"{purpose} needs the plugin {plugin_id!r}" if purpose else f"The plugin {plugin_id!r} is needed"
        )
        problem = self.problem(plugin_id)
        if problem is not None:
            raise PluginMissing(f"{subject}, which is out of use: {problem.message}", plugin=plugin_id)
        if plugin_id in self.installed and not self.is_allowed(plugin_id):
            raise PluginMissing(f"{subject}, which is installed but not allowed here.", plugin=plugin_id)
        raise PluginMissing(f"{subject}, which is not installed.", plugin=plugin_id)

    def call(self, hook: str, plugin_id: str, **arguments: Any) -> None:
        """Calls one lifecycle hook of one plugin; does nothing when it has none. Exceptions pass."""
        implementation = self.hooks.get(plugin_id, {}).get(hook)
        if implementation is not None:
            with plugin_step(plugin_id, hook):
                implementation(**arguments)


def load_plugins(
    allowed: Sequence[str] | None = None,
    *,
    check_route: RouteCheck | None = None,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
    families: Collection[str] | None = None,
    without: Collection[str] = (),
    known: Sequence[PluginProblem] = (),
) -> Plugins:
    """Finds, checks and registers the plugins of this process. Called once, at boot; imports plugin code.

    Nothing that is wrong with a plugin raises: see ``Plugins.problems``. ``allowed`` is None for all that are
    installed; code of others is never imported. ``check_route`` raises ``PluginError`` to refuse a route.

    ``families`` are the registries to fill: those of the kernel by the names of ``Registries``, those of
    drivers as ``driver:family``; None for all. A short command fills none, and so imports neither what
    answers requests nor the families of drivers. The background process, which answers no
    requests, leaves theirs empty by ``without``. ``known`` is what a whole boot of the same plugins found
    wrong: what is out of use there is so here, although the reason may be in a registry that stays empty.
    """
    installed, problems = find_installed()
    default_set, set_problems = find_plugin_set()
    claimed = {problem.plugin_id for problem in problems}
    wanted = None if allowed is None else tuple(dict.fromkeys(allowed))
    available = [name for name in installed if wanted is None or name in wanted]
    boot = _Boot(make_registries(check_route), families, available, without, known)
    boot.problems.extend(problem for problem in problems if wanted is None or problem.plugin_id in wanted)
    boot.problems.extend(set_problems)
    for plugin_id in _in_order(installed if wanted is None else wanted, default_set):
        plugin = installed.get(plugin_id)
        if plugin is not None:
            boot.read(plugin)
        elif plugin_id not in claimed:
            boot.report(
                plugin_id, ProblemKind.MISSING, f"The plugin {plugin_id!r} is allowed but not installed."
            )
    boot.load()
    boot.registries.freeze()
    for problem in boot.problems:
        logger.warning("plugin out of use: %s: %s", problem.kind.value, problem.message)
    return Plugins(
        registries=boot.registries,
        installed=installed,
        allowed=wanted,
        default_set=default_set,
        descriptors=MappingProxyType(boot.descriptors),
        problems=tuple(boot.problems),
        hooks=MappingProxyType(boot.hooks),
        overrides=MappingProxyType(dict(overrides or {})),
        auth_modes=MappingProxyType(boot.auth_modes),
        read=MappingProxyType(boot.known_descriptors),
    )


def load_descriptors(allowed: Sequence[str] | None = None) -> tuple[PluginDescriptor, ...]:
    """Returns the descriptors of the plugins that may be used, in the order of registration.

    Nothing else of any plugin is imported. ``load_plugins`` finds what is wrong with one, and reports it.
    """
    installed, _ = find_installed()
    default_set, _ = find_plugin_set()
    wanted = installed if allowed is None else dict.fromkeys(allowed)
    claims = Claims()
    found = []
    for plugin_id in _in_order(wanted, default_set):
        if plugin_id in installed:
            with contextlib.suppress(_Refused):
                descriptor = _load_descriptor(installed[plugin_id])
                _check(descriptor, claims)
                found.append(descriptor)
    return tuple(found)


class _Refused(Exception):
    def __init__(self, kind: ProblemKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class _Boot:
    def __init__(
        self,
        registries: Registries,
        families: Collection[str] | None,
        available: Iterable[str],
        without: Collection[str] = (),
        known: Iterable[PluginProblem] = (),
    ) -> None:
        self.registries = registries
        self.families = families
        self.without = frozenset(without)
        self.known = {problem.plugin_id: problem for problem in known}
        self.available = frozenset(available)
        self.problems: list[PluginProblem] = []
        self.descriptors: dict[str, PluginDescriptor] = {}
        self.known_descriptors: dict[str, PluginDescriptor] = {}
        self.hooks: dict[str, Mapping[str, Callable[..., Any]]] = {}
        self.claims = Claims()
        self.auth_modes: dict[str, tuple[str, ...]] = {}
        self.manager = pluggy.PluginManager("svc")
        self.manager.add_hookspecs(hookspecs)
        self._read: list[PluginDescriptor] = []

    def report(self, plugin_id: str, kind: ProblemKind, message: str) -> None:
        self.problems.append(PluginProblem(plugin_id, kind, message))

    def read(self, plugin: InstalledPlugin) -> None:
        """Takes in what a plugin says about itself; nothing more of it is imported."""
        with self._reporting(plugin.id):
            descriptor = self.known_descriptors[plugin.id] = _load_descriptor(plugin)
            _check(descriptor, self.claims)
            self.auth_modes[plugin.id] = descriptor.auth_modes
            self._check_needs(descriptor)
            self._read.append(descriptor)

    def load(self) -> None:
        """Registers the plugins that were read; families first: an extension may precede its driver."""
        usable = []
        for descriptor in self._read:
            with self._reporting(descriptor.id):
                if descriptor.families is not None and self._is_asked_for(descriptor.id):
                    self._add_families(descriptor.id, descriptor.families)
                usable.append(descriptor)
        for descriptor in usable:
            if descriptor.id in self.known:
                self.problems.append(self.known[descriptor.id])
                continue
            with self._reporting(descriptor.id):
                implementation = _import_implementation(descriptor)
                hooks = self._implementations(descriptor, implementation)
                self._register(descriptor, hooks)
                self.descriptors[descriptor.id] = descriptor
                self.hooks[descriptor.id] = MappingProxyType(
                    {name: hook for name, hook in hooks.items() if not name.startswith(REGISTRATION_PREFIX)}
                )
        for driver in {driven.driver for driven in self.registries.driven.values()} - {*self.descriptors}:
            self.registries.drop_families(driver)

    @contextmanager
    def _reporting(self, plugin_id: str) -> Iterator[None]:
        try:
            yield
        except _Refused as refusal:
            self.report(plugin_id, refusal.kind, refusal.message)

    def _is_asked_for(self, driver: str) -> bool:
        return self.families is None or any(item.startswith(driver + ":") for item in self.families)

    def _add_families(self, driver: str, module_name: str) -> None:
        try:
            with plugin_step(driver, f"the import of {module_name}"):
                module, families = load_families(module_name)
            self.registries.add_families(driver, families)
            self.manager.add_hookspecs(module)
        except (Exception, SystemExit) as error:
            logger.info("the families of plugin %s cannot be had", driver, exc_info=error)
            kind = _kind_of(error) if isinstance(error, SvcError) else ProblemKind.BROKEN
            raise _Refused(
                kind, f"The families of the plugin {driver!r} in {module_name} cannot be used: {_said(error)}"
            ) from error

    def _check_needs(self, descriptor: PluginDescriptor) -> None:
        missing = [name for name in descriptor.needs if name not in self.available]
        if missing:
            raise _Refused(
                ProblemKind.NEEDS,
                f"The plugin {descriptor.id!r} needs the plugin {missing[0]!r}, "
                "which is not installed or not allowed here.",
            )

    def _implementations(
        self, descriptor: PluginDescriptor, implementation: object
    ) -> Mapping[str, Callable[..., Any]]:
        drivers = {name: driven.driver for name, driven in self.registries.driven.items()}
        known = KnownFamilies(drivers, is_complete=self.families is None)
        problems = check_implementation(descriptor, implementation, known)
        if problems:
            raise _Refused(problems[0].kind, " ".join(problem.message for problem in problems))
        if implementation is None:
            return {}
        try:
            self.manager.register(implementation, name=descriptor.id)
        except (pluggy.PluginValidationError, ValueError) as error:
            raise _Refused(
                ProblemKind.BROKEN,
                f"A hook of the plugin {descriptor.id!r} has a wrong signature: {_short(error)}.",
            ) from error
        found: dict[str, Callable[..., Any]] = {}
        for caller in self.manager.get_hookcallers(implementation) or ():
            for hook in caller.get_hookimpls():
                if hook.plugin_name == descriptor.id:
                    found[caller.name] = _narrowed(hook)
        return found

    def _register(self, descriptor: PluginDescriptor, hooks: Mapping[str, Callable[..., Any]]) -> None:
        step = ""
        registry: Any
        try:
            with self.registries.adding(descriptor.id):
                for family, registry in self.registries.named().items():
                    if not self._is_filled(family, descriptor):
                        continue
                    step = REGISTRATION_PREFIX + family
                    if step in hooks:
                        with plugin_step(descriptor.id, step):
                            hooks[step](**{family: registry})
                    for place in descriptor.adds.get(self._full_name(family), ()):
                        step = f"the import of {place}"
                        for thing in load_additions(descriptor.id, place):
                            registry.add(thing)
                    if family == "routes":
                        self.registries.routes.add_operations(descriptor.declared_operations())
        except (Exception, SystemExit) as error:
            if descriptor.implementation is not None:
                self.manager.unregister(name=descriptor.id)
            if isinstance(error, SvcError):
                raise _Refused(_kind_of(error), f"The plugin {descriptor.id!r}: {error.message}") from error
            logger.info("plugin %s failed in %s", descriptor.id, step, exc_info=error)
            raise _Refused(
                ProblemKind.BROKEN,
                f"The plugin {descriptor.id!r} failed in {step}: {describe_error(error)}.",
            ) from error

    def _full_name(self, family: str) -> str:
        driven = self.registries.driven.get(family)
        return family if driven is None else f"{driven.driver}:{family}"

    def _is_filled(self, family: str, descriptor: PluginDescriptor) -> bool:
        driven = self.registries.driven.get(family)
        if driven is None:
            return family not in self.without and (self.families is None or family in self.families)
        name = self._full_name(family)
        is_theirs = driven.driver == descriptor.id or name in descriptor.extends
        return is_theirs and (self.families is None or name in self.families)


def _in_order(plugin_ids: Iterable[str], default_set: Sequence[str]) -> list[str]:
    """The default set first, then the others by id, whatever the command line says.

    So when two plugins add the same name, it is always the same one that stays.
    """
    places = {plugin_id: place for place, plugin_id in enumerate(default_set)}
    return sorted(plugin_ids, key=lambda plugin_id: (places.get(plugin_id, len(places)), plugin_id))


def _check(descriptor: PluginDescriptor, claims: Claims) -> None:
    """Checks a descriptor, and enters its claims."""
    _check_api(descriptor)
    try:
        claims.add(descriptor)
    except PluginError as error:
        raise _Refused(_kind_of(error), error.message) from error


def _load_descriptor(plugin: InstalledPlugin) -> PluginDescriptor:
    source = f"{plugin.distribution} ({plugin.value})" if plugin.distribution else plugin.value
    try:
        with plugin_step(plugin.id, f"the import of {plugin.value}"):
            descriptor = plugin.entry_point.load()
    except (Exception, SystemExit) as error:
        logger.info("the descriptor of plugin %s cannot be imported", plugin.id, exc_info=error)
        raise _Refused(
            ProblemKind.BROKEN,
            f"The descriptor of the plugin {plugin.id!r} in {source} cannot be imported: {_said(error)}",
        ) from error
    if not isinstance(descriptor, PluginDescriptor):
        raise _Refused(ProblemKind.BROKEN, f"The plugin {plugin.id!r}: {source} is not a PluginDescriptor.")
    if descriptor.id != plugin.id:
        raise _Refused(
            ProblemKind.BROKEN,
            f"The entry point {plugin.id!r} of {source} holds the descriptor of {descriptor.id!r}.",
        )
    return descriptor


def _check_api(descriptor: PluginDescriptor) -> None:
    lowest, highest = descriptor.api
    if lowest > API_VERSION:
        raise _Refused(
            ProblemKind.TOO_NEW,
            f"The plugin {descriptor.id!r} {descriptor.version} needs plugin API {lowest}; "
            f"this svc has {API_VERSION}.",
        )
    if highest < API_VERSION:
        raise _Refused(
            ProblemKind.TOO_OLD,
            f"The plugin {descriptor.id!r} {descriptor.version} works up to plugin API {highest}; "
            f"this svc has {API_VERSION}.",
        )


def _import_implementation(descriptor: PluginDescriptor) -> object:
    if descriptor.implementation is None:
        return None
    where = f"The implementation {descriptor.implementation!r} of the plugin {descriptor.id!r}"
    module, _, attribute = descriptor.implementation.partition(":")
    try:
        with plugin_step(descriptor.id, f"the import of {module}"):
            implementation: object = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        logger.info("plugin %s cannot be imported", descriptor.id, exc_info=error)
        raise _Refused(ProblemKind.BROKEN, f"{where} cannot be imported: {describe_error(error)}.") from error
    if attribute:
        try:
            implementation = getattr(implementation, attribute)
        except AttributeError:
            raise _Refused(ProblemKind.BROKEN, f"{where} does not exist.") from None
    if not isinstance(implementation, type):
        return implementation
    try:
        return implementation()
    except (Exception, SystemExit) as error:
        logger.info("plugin %s cannot be instantiated", descriptor.id, exc_info=error)
        raise _Refused(
            ProblemKind.BROKEN, f"{where} cannot be instantiated: {describe_error(error)}."
        ) from error


def load_additions(plugin_id: str, place: str) -> tuple[Any, ...]:
    """Imports what a descriptor adds at a place; instantiates classes. What that raises passes."""
    with plugin_step(plugin_id, f"the import of {place}"):
        found = pkgutil.resolve_name(place)
        things = found if type(found) is tuple else (found,)
        if not things:
            raise PluginError(f"There is nothing at {place}.")
        return tuple(one() if isinstance(one, type) else one for one in things)


def _narrowed(hook: pluggy.HookImpl) -> Callable[..., Any]:
    """A hook implementation that takes all arguments of the hook and passes on those that it declares."""
    function, names = hook.function, hook.argnames

    def call(**arguments: Any) -> Any:
        return function(*[arguments[name] for name in names])

    return call


def _kind_of(error: SvcError) -> ProblemKind:
    return ProblemKind.DUPLICATE if error.details.get("duplicate") else ProblemKind.BROKEN


def _said(error: BaseException) -> str:
    return error.message if isinstance(error, PluginError) else describe_error(error)


def _short(error: Exception) -> str:
    return " ".join(text_of(error).split())[:300].rstrip(".")
