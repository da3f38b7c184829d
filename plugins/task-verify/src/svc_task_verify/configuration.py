"""The settings of the plugin."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["BytesPerSecond", "VerifyConfiguration"]

BytesPerSecond = Annotated[int, msgspec.Meta(ge=65_536, le=1 << 40)]
"""How much is read in a second."""


class VerifyConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the database is verified in the background.

    Attributes:
        bytes_per_second: how much is read in a second, where a task does not say so itself.
    """

    bytes_per_second: BytesPerSecond = 16 << 20
