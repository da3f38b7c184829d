"""What the system tree says of collections: the horizon, and whether one is unfinished.

They stand at ``/collection`` and ``/collection-plan``, and in no backup: they concern offsets of this log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from svc.errors import CorruptRecord

if TYPE_CHECKING:
    from svc.database.version import Version

__all__ = ["PLAN_PATH", "STATE_PATH", "CollectionState", "read_state"]

STATE_PATH = ("collection",)
PLAN_PATH = ("collection-plan",)


class CollectionState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What stands at ``/collection``, as JSON.

    Attributes:
        horizon: number of the first commit whose version is whole; 0 when nothing was collected.
        pending: whether the plan at ``/collection-plan`` is being carried out: its runs mean nothing.
        sweep: names the last plan, 32 hexadecimal digits; empty before the first. A key index that does not
            know it may hold what that has destroyed.
    """

    horizon: int = 0
    pending: bool = False
    at_ms: int = 0
    sweep: str = ""

    def encode(self) -> bytes:
        """Returns the content of the file."""
        return msgspec.json.encode(self)


NOTHING = CollectionState()


def read_state(system: Version) -> CollectionState:
    """Returns what a system tree says of collections."""
    entry = system.get(STATE_PATH)
    if entry is None:
        return NOTHING
    try:
        return msgspec.json.decode(system.read_all(entry), type=CollectionState)
    except msgspec.MsgspecError as error:
        raise CorruptRecord("The state of the collection is not of the expected form.") from error
