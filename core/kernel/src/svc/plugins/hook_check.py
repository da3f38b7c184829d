"""Checks of a plugin's implementation object that pluggy leaves to chance.

A misspelt hook, a forgotten ``@hookimpl``, an argument with a default (which is never passed) and a wrapper
around other plugins' hooks would all be silent; here each is a problem with a name.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from svc.plugins import hookspecs
from svc.plugins.descriptor import PluginDescriptor
from svc.plugins.discovery import PluginProblem, ProblemKind
from svc.plugins.families import REGISTRATION_PREFIX

__all__ = ["HOOK_NAMES", "KnownFamilies", "check_implementation"]

HOOK_NAMES = frozenset(name for name in vars(hookspecs) if name.startswith("svc_"))
"""Names of the kernel's hooks."""

KERNEL_FAMILIES = {
    "jobs",
    *(name.removeprefix(REGISTRATION_PREFIX) for name in HOOK_NAMES if name.startswith(REGISTRATION_PREFIX)),
} - {"routes"}
"""Families of the kernel to which a descriptor can add; routes are added as operations."""


class KnownFamilies(Struct, frozen=True):
    """The families of plugins that a boot knows, each by its name with the plugin that drives it.

    A boot that fills only some registries is not ``is_complete``: it does not ask the others' drivers.
    """

    drivers: Mapping[str, str]
    is_complete: bool = True


def check_implementation(
    descriptor: PluginDescriptor, implementation: object, families: KnownFamilies
) -> list[PluginProblem]:
    """Returns what is wrong with a plugin's hook implementations and additions; empty when all is well.

    A hook of a family with an unknown driver rests: checked, not missed. Calls nothing, reads no property.
    """
    check = _Check(descriptor, families)
    problems = [*map(check.extended, descriptor.extends), *map(check.added, descriptor.adds)]
    problems += [check.function(name, function) for name, function in _functions(implementation)]
    return [problem for problem in problems if problem is not None]


def _functions(implementation: object) -> Iterator[tuple[str, object]]:
    for name in dir(implementation):
        found = inspect.getattr_static(implementation, name, None)
        if isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
        if inspect.isroutine(found):
            yield name, found


class _Check:
    def __init__(self, descriptor: PluginDescriptor, families: KnownFamilies) -> None:
        self._id = descriptor.id
        self._families = families
        self._drives_unknown_ones = descriptor.families is not None and not families.is_complete
        names = [item.partition(":")[2] for item in descriptor.extends]
        names += [name for name, driver in families.drivers.items() if driver == descriptor.id]
        self._usable = {*HOOK_NAMES, *(REGISTRATION_PREFIX + name for name in names)}

    def extended(self, item: str) -> PluginProblem | None:
        driver, _, family = item.partition(":")
        known = [name for name, other in self._families.drivers.items() if other == driver]
        if not known or family in known:
            return None
        message = f"The plugin {self._id!r} extends {item!r}, and {driver!r} has no such family."
        return self._problem(ProblemKind.UNKNOWN_HOOK, message + _advice(family, known))

    def added(self, family: str) -> PluginProblem | None:
        driver, separator, _ = family.partition(":")
        if separator:
            return self.extended(family) if driver == self._id else None
        if family in KERNEL_FAMILIES:
            return None
        message = f"The plugin {self._id!r} adds to {family!r}, and the kernel has no such family."
        return self._problem(ProblemKind.UNKNOWN_HOOK, message + _advice(family, KERNEL_FAMILIES))

    def function(self, name: str, function: object) -> PluginProblem | None:
        options = getattr(function, "svc_impl", None)
        if options is None:
            if name in self._usable and not hasattr(function, "svc_spec"):
                message = f"{name} of the plugin {self._id!r} lacks the decorator @hookimpl."
                return self._problem(ProblemKind.BROKEN, message)
            return None
        hook = options.get("specname") or name
        if hook not in self._usable and options.get("optionalhook"):
            return None
        if hook not in self._usable and not self._may_be_own(hook):
            return self._problem(ProblemKind.UNKNOWN_HOOK, self._not_usable(hook))
        if options.get("wrapper") or options.get("hookwrapper"):
            message = (
                f"{name} of the plugin {self._id!r} is a wrapper, and no plugin may wrap the hooks of others."
            )
            return self._problem(ProblemKind.BROKEN, message)
        return self._parameters(name, function)

    def _may_be_own(self, hook: str) -> bool:
        return self._drives_unknown_ones and hook.startswith(REGISTRATION_PREFIX)

    def _not_usable(self, hook: str) -> str:
        family = hook.removeprefix(REGISTRATION_PREFIX)
        driver = self._families.drivers.get(family)
        if driver is None or not hook.startswith(REGISTRATION_PREFIX):
            return f"The plugin {self._id!r} implements {hook}, and there is no such hook." + _advice(
                hook, self._usable
            )
        return (
            f"The plugin {self._id!r} implements {hook} of the plugin {driver!r}, "
            f"and its descriptor does not say extends=({driver + ':' + family!r},)."
        )

    def _parameters(self, name: str, function: object) -> PluginProblem | None:
        for parameter in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
            if parameter.default is not inspect.Parameter.empty:
                message = (
                    f"{name} of the plugin {self._id!r} gives its argument {parameter.name!r} a default, "
                    "and such an argument is never passed."
                )
                return self._problem(ProblemKind.BROKEN, message)
        return None

    def _problem(self, kind: ProblemKind, message: str) -> PluginProblem:
        return PluginProblem(self._id, kind, message)


def _advice(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f" Did you mean {close[0]}?" if close else ""
