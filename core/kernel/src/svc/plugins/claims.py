"""What belongs to one plugin alone: commands, options, auth modes, error codes, and paths of the system tree.

Descriptors claim names in the order of registration. What is claimed stays claimed though the plugin's code
turn out to be broken, so that whoever reads descriptors alone comes to the same owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import svc.errors
from svc.errors import PluginError, SvcError
from svc.kernel_commands import KERNEL_COMMANDS
from svc.paths import Path
from svc.plugins.descriptor import PluginDescriptor

__all__ = ["RESERVED_OPTIONS", "RESERVED_PATHS", "Claims", "overlap"]

RESERVED_OPTIONS = frozenset(
    {
        *("access-log", "auth", "background", "body-timeout", "config", "cors-origins", "database"),
        *("graceful-timeout", "help", "host", "hsts", "log-format", "max-batch", "max-body", "max-json-body"),
        *("max-tree-entries", "min-rate", "plugin-option", "plugins", "port", "root-key", "tls-cert"),
        *("tls-key", "token", "trusted-proxies", "version", "worker-class", "workers"),
    }
)
"""Options of the server itself, and names whose environment variable means something else."""

RESERVED_PATHS: tuple[Path, ...] = (("plugins",), ("plugin-set",), ("refs",))
"""Paths of the system tree that belong to the kernel. Below ``refs``, each kind of refs may be claimed."""

Claim = tuple[str, str]
"""What sort of name, and the name."""


class Claims:
    """Who has claimed what, so far."""

    def __init__(self) -> None:
        self._owners: dict[Claim, str] = {}
        self._paths: list[tuple[Path, str]] = []

    def add(self, descriptor: PluginDescriptor) -> None:
        """Gives a plugin all that it claims, or raises PluginError: a name is taken, or claimed twice."""
        names = list(_names_of(descriptor))
        for kind, name in _twice(names):
            raise PluginError(f"The plugin {descriptor.id!r} claims the {kind} {name!r} twice.")
        for kind, name in names:
            owner = self._owners.get((kind, name))
            if owner is not None:
                raise _taken(descriptor, kind, name, f"belongs to the plugin {owner!r}")
            if _is_of_kernel(kind, name):
                raise _taken(descriptor, kind, name, "belongs to svc itself")
        for owned in descriptor.system_paths:
            self._require_free(descriptor, owned.parts)
        self._owners.update(dict.fromkeys(names, descriptor.id))
        self._paths.extend((owned.parts, descriptor.id) for owned in descriptor.system_paths)

    def _require_free(self, descriptor: PluginDescriptor, path: Path) -> None:
        shown = "/".join(path)
        is_kind_of_refs = path[0] == "refs" and len(path) > 1
        if not is_kind_of_refs and any(overlap(path, reserved) for reserved in RESERVED_PATHS):
            raise _taken(descriptor, "path of the system tree", shown, "belongs to svc itself")
        for claimed, owner in self._paths:
            if overlap(path, claimed):
                raise _taken(descriptor, "path of the system tree", shown, f"belongs to the plugin {owner!r}")


def overlap(one: Path, other: Path) -> bool:
    """Whether one of two paths lies at or below the other; ``*`` stands for any name."""
    return all(a == b or "*" in (a, b) for a, b in zip(one, other, strict=False))


def _names_of(descriptor: PluginDescriptor) -> Iterator[Claim]:
    yield from (("option", option.name) for option in descriptor.options)
    yield from (("auth mode", name) for name in descriptor.auth_modes)
    yield from (("error code", code) for code in descriptor.error_codes)
    yield from (("command", command.name) for command in descriptor.commands)
    yield from (("completion", completion.kind) for completion in descriptor.completions)


def _twice(names: Iterable[Claim]) -> Iterator[Claim]:
    seen: set[Claim] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)


def _is_of_kernel(kind: str, name: str) -> bool:
    if kind == "option":
        return name in RESERVED_OPTIONS
    if kind == "command":
        return any(command.name == name for command in KERNEL_COMMANDS)
    return kind == "error code" and name in _kernel_codes()


def _kernel_codes() -> set[str]:
    kinds = (getattr(svc.errors, name) for name in svc.errors.__all__)
    return {kind.code for kind in kinds if issubclass(kind, SvcError)}


def _taken(descriptor: PluginDescriptor, kind: str, name: str, whose: str) -> PluginError:
    message = f"The plugin {descriptor.id!r} claims the {kind} {name!r}, which {whose}."
    return PluginError(message, duplicate=True)
