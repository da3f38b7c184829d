"""What an extension is made of: other plugins import this module, and nothing else of the plugin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from svc.plugin import Family, NamedRegistry, hookspec

__all__ = ["FAMILIES", "HELLO_STYLES", "HelloStyle"]


class HelloStyle(ABC):
    """A way to greet. Stateless: one object serves all databases of a process.

    Attributes:
        name: what a request calls the style.
    """

    name: ClassVar[str]

    @abstractmethod
    def greet(self, name: str, configuration: Any) -> str:
        """Returns a greeting. Called in a request; does not block.

        Args:
            name: who is greeted.
            configuration: the settings of the plugin that added the style, in this database.
        """


@hookspec
def svc_register_hello_styles(hello_styles: NamedRegistry[HelloStyle]) -> None:
    """Adds styles: ``hello_styles.add(MyStyle())``.

    Called at boot, in the processes that serve databases.
    """


HELLO_STYLES: Family[HelloStyle] = Family("hello_styles", "greeting style", HelloStyle)
FAMILIES = (HELLO_STYLES,)
