"""Checks of contents before they are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from svc.paths import Path

if TYPE_CHECKING:
    from svc.plugins.context import PluginContext

__all__ = ["ContentCheck"]


class ContentCheck(ABC):
    """Refuses files that are not of the form that their path asks for. Stateless: one object serves all.

    Attributes:
        name: what the registry calls it; begin it with the id of the plugin.
        suffixes: the last segments of the paths whose files are checked, as ``((".svc-config", "x.json"),)``.
        maximum_size: most bytes of such a file; a larger one is refused without being read.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[tuple[str, ...], ...]]
    maximum_size: ClassVar[int]

    @abstractmethod
    def check(self, path: Path, content: bytes, context: PluginContext) -> None:
        """Checks one file before it is committed. Called by whoever commits; takes milliseconds at most.

        Args:
            path: where the file shall stand.
            content: all of it.
            context: the plugin that added the check, in the database that is written to.

        Raises:
            InvalidInput: it is not of the form; the message says what is wrong with it.
        """
