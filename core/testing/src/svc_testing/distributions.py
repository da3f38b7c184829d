"""Distributions made on the spot: real packages with real metadata, for tests of discovery and loading."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["DistributionFactory"]


class DistributionFactory:
    """Installs small distributions, each into a directory of its own.

    Args:
        directory: an empty directory; each distribution gets one of its own below it.
        in_process: whether this process shall see them; without, only processes that are started with
            ``environment`` do.

    ``close`` takes them out of ``sys.path`` and ``sys.modules`` again.
    """

    def __init__(self, directory: Path, *, in_process: bool = True) -> None:
        self._directory = directory
        self._in_process = in_process
        self._paths: list[str] = []
        self._modules: list[str] = []

    def install(
        self,
        name: str,
        *,
        modules: Mapping[str, str],
        entry_points: Mapping[str, str] | None = None,
        version: str = "1.0",
        group: str = "svc.plugins",
        summary: str = "A distribution made by a test",
    ) -> Path:
        """Installs a distribution and returns the directory that holds it.

        Args:
            name: name of the distribution.
            modules: source of each module by its name; ``package.module`` makes the package too.
            entry_points: value of each entry point by its name.
            version: version of the distribution.
            group: group of the entry points.
            summary: one line of its metadata.
        """
        place = self._directory / f"{len(self._paths)}-{name}"
        for module, source in modules.items():
            self._write_module(place, module, source)
        metadata = place / f"{name.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n", encoding="utf-8"
        )
        lines = [f"[{group}]", *(f"{key} = {value}" for key, value in (entry_points or {}).items())]
        (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._paths.append(str(place))
        if self._in_process:
            sys.path.insert(0, str(place))
            importlib.invalidate_caches()
        return place

    @property
    def paths(self) -> tuple[str, ...]:
        """The directory of each distribution, in the order of installation."""
        return tuple(self._paths)

    def environment(self, variables: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables with which another process sees the distributions.

        Args:
            variables: variables to add to; their ``PYTHONPATH``, else that of this process, comes last.
        """
        given = dict(variables or {})
        inherited = given.get("PYTHONPATH") or os.environ.get("PYTHONPATH")
        return {**given, "PYTHONPATH": os.pathsep.join([*self._paths, *([inherited] if inherited else [])])}

    def close(self) -> None:
        """Undoes every installation in this process."""
        if not self._in_process:
            return
        for path in self._paths:
            if path in sys.path:
                sys.path.remove(path)
        for module in self._modules:
            sys.modules.pop(module, None)
        importlib.invalidate_caches()

    def _write_module(self, place: Path, module: str, source: str) -> None:
        parts = module.split(".")
        directory = place.joinpath(*parts[:-1])
        directory.mkdir(parents=True, exist_ok=True)
        for depth in range(1, len(parts)):
            package = place.joinpath(*parts[:depth], "__init__.py")
            if not package.exists():
                package.write_text("", encoding="utf-8")
        (directory / f"{parts[-1]}.py").write_text(source, encoding="utf-8")
        self._modules.extend(".".join(parts[:depth]) for depth in range(1, len(parts) + 1))
