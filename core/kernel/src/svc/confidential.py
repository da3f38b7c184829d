"""Values that hold secrets, and may stand in a log line or a traceback all the same."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

__all__ = ["Confidential"]


class Confidential(Struct, frozen=True):
    """A struct whose representation shows those fields alone that ``shown`` names.

    Whatever holds a token, a key, a password or a code is one: bodies of requests, answers, records. A field
    that is added later is hidden until somebody says that it may be seen.
    """

    shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.shown)
        return f"{type(self).__name__}({fields})"
