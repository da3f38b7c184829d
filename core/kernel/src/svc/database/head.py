"""HEAD as every process sees it: one checksummed cell of shared memory beside the log.

A value is packed into the cell by whoever commits, and read by everybody in about a microsecond. The
cell is a hint that can be lost: the log alone says what is committed.
"""

from __future__ import annotations

import struct

from msgspec import Struct

from svc.hashing import HASH_SIZE, Hash

__all__ = ["HEAD_SIZE", "Head"]

_HEAD = struct.Struct("<QQQQ32s32s16sB")
HEAD_SIZE = _HEAD.size


class Head(Struct, frozen=True):
    """The state after the last commit.

    Attributes:
        sequence: number of the last commit; 0 in a new database.
        root: root of the user tree: the version that HEAD names.
        time_ms: when the last commit was made, Unix milliseconds.
        commit_end: offset in the log behind the last commit's record.
        pending_from: where in the log a commit was begun and not published, for the next holder of the commit
            lock to finish or forget; 0 when none was.
        boot_id: boot of the machine in which the cell was written.
        latched: whether an I/O error made durability uncertain: no process may write any more.
    """

    sequence: int
    root: Hash
    system_root: Hash
    time_ms: int
    commit_end: int
    pending_from: int
    boot_id: bytes
    latched: bool = False

    def announcing(self) -> Head:
        """Returns the same state, and that a commit was begun where it ends."""
        return Head(
            self.sequence,
            self.root,
            self.system_root,
            self.time_ms,
            self.commit_end,
            max(self.commit_end, 1),
            self.boot_id,
            self.latched,
        )

    @classmethod
    def of_nothing(cls) -> Head:
        """Returns a head that nobody believes, and that proves nothing."""
        return cls(0, bytes(HASH_SIZE), bytes(HASH_SIZE), 0, 0, 0, bytes(16))

    def pack(self) -> bytes:
        """Returns the cell's payload."""
        return _HEAD.pack(
            self.sequence,
            self.time_ms,
            self.commit_end,
            self.pending_from,
            self.root,
            self.system_root,
            self.boot_id,
            self.latched,
        )

    @classmethod
    def unpack(cls, payload: bytes) -> Head:
        """Returns the head of a cell's payload."""
        sequence, time_ms, commit_end, pending_from, root, system_root, boot_id, latched = _HEAD.unpack(
            payload
        )
        return cls(sequence, root, system_root, time_ms, commit_end, pending_from, boot_id, bool(latched))
