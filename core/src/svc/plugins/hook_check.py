"""Checks of a plugin's implementation object that pluggy leaves to chance.

A misspelt hook, a forgotten ``@hookimpl``, an argument with a default (which is never passed) and a wrapper
around other plugins' hooks would all be silent; here each is a problem with a name.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator

from svc.plugins import hookspecs
from svc.plugins.discovery import PluginProblem, ProblemKind

__all__ = ["HOOK_NAMES", "check_implementation"]

HOOK_NAMES = frozenset(name for name in vars(hookspecs) if name.startswith("svc_"))
"""Names of all hooks."""


def check_implementation(plugin_id: str, implementation: object) -> list[PluginProblem]:
    """Returns what is wrong with the hook implementations of an object; empty when all is well.

    Args:
        plugin_id: whose they are.
        implementation: a module or an object. Nothing of it is called; properties are not read.
    """
    return [
        problem
        for name, function in _functions(implementation)
        if (problem := _problem(plugin_id, name, function)) is not None
    ]


def _functions(implementation: object) -> Iterator[tuple[str, object]]:
    for name in dir(implementation):
        found = inspect.getattr_static(implementation, name, None)
        if isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
        if inspect.isroutine(found):
            yield name, found


def _problem(plugin_id: str, name: str, function: object) -> PluginProblem | None:
    options = getattr(function, "svc_impl", None)
    if options is None:
        if name in HOOK_NAMES and not hasattr(function, "svc_spec"):
            message = f"{name} of the plugin {plugin_id!r} lacks the decorator @hookimpl."
            return PluginProblem(plugin_id, ProblemKind.BROKEN, message)
        return None
    hook = options.get("specname") or name
    if hook not in HOOK_NAMES:
        if options.get("optionalhook"):
            return None
        close = difflib.get_close_matches(hook, HOOK_NAMES, n=1)
        advice = f" Did you mean {close[0]}?" if close else ""
        message = f"The plugin {plugin_id!r} implements {hook}, and there is no such hook.{advice}"
        return PluginProblem(plugin_id, ProblemKind.UNKNOWN_HOOK, message)
    if options.get("wrapper") or options.get("hookwrapper"):
        message = (
            f"{name} of the plugin {plugin_id!r} is a wrapper, and no plugin may wrap the hooks of others."
        )
        return PluginProblem(plugin_id, ProblemKind.BROKEN, message)
    return _problem_with_parameters(plugin_id, name, function)


def _problem_with_parameters(plugin_id: str, name: str, function: object) -> PluginProblem | None:
    for parameter in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        if parameter.default is not inspect.Parameter.empty:
            message = (
                f"{name} of the plugin {plugin_id!r} gives its argument {parameter.name!r} a default, "
                "and such an argument is never passed."
            )
            return PluginProblem(plugin_id, ProblemKind.BROKEN, message)
    return None
