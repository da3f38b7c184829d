"""Was there one order of all operations on a register that explains what everybody was answered?

A history of operations, each with the times of its request and answer, flows in; yes or no flows out. The
search is that of Wing and Gong: take as the next any operation that no other one precedes in time, apply
it to the register, go on; what was tried once (the set of operations taken, and the value) is not tried again
(Lowe). An operation whose answer never came may take effect at any time after its request, or never.
Linearizability is local: a history of several registers is linearizable when that of each register is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["CREATE", "DELETE", "READ", "SWAP", "WRITE", "Operation", "is_linearizable"]

READ = "read"
WRITE = "write"
DELETE = "delete"
SWAP = "swap"
CREATE = "create"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on one register, as its client saw it.

    Attributes:
        kind: ``READ``; ``WRITE`` whatever was there; ``CREATE`` if nothing is there; ``SWAP`` if the value is
            the expected one; ``DELETE``.
        invoked: when the request was sent.
        returned: when the answer came; infinite when none did.
        value: what a write, creation or swap stores.
        expected: what a swap expects.
        result: of a read the value, None for nothing; of a write whether something was replaced; of a
            creation, swap or deletion whether it was done. Without meaning when no answer came.
    """

    kind: str
    invoked: float
    returned: float = math.inf
    value: str | None = None
    expected: str | None = None
    result: str | bool | None = None

    @property
    def answered(self) -> bool:
        """Whether the outcome is known."""
        return self.returned != math.inf

    def apply(self, value: str | None) -> tuple[str | None, str | bool | None]:
        """Returns the register's value after the operation, and what it answers, when it finds ``value``."""
        if self.kind == READ:
            return value, value
        if self.kind == WRITE:
            return self.value, value is not None
        if self.kind == DELETE:
            return None, value is not None
        done = value is None if self.kind == CREATE else value == self.expected
        return (self.value if done else value), done


def is_linearizable(history: Iterable[Operation], initial: str | None = None) -> bool:
    """Whether some order of the operations on one register explains every answer.

    Args:
        history: the operations, in any order.
        initial: what the register holds at first; None for nothing.
    """
    operations = sorted(history, key=lambda operation: operation.invoked)
    required = sum(1 << place for place, operation in enumerate(operations) if operation.answered)
    start = (0, initial)
    seen = {start}
    stack = [start]
    while stack:
        taken, value = stack.pop()
        if taken & required == required:
            return True
        for place in reversed(_next(operations, taken)):
            after, answer = operations[place].apply(value)
            if operations[place].answered and answer != operations[place].result:
                continue
            state = (taken | 1 << place, after)
            if state not in seen:
                seen.add(state)
                stack.append(state)
    return False


def _next(operations: list[Operation], taken: int) -> list[int]:
    """The operations not taken that were requested before any other of them was answered."""
    earliest = math.inf
    found: list[int] = []
    place = (~taken & (taken + 1)).bit_length() - 1
    while place < len(operations) and operations[place].invoked <= earliest:
        if not taken >> place & 1:
            found.append(place)
            earliest = min(earliest, operations[place].returned)
        place += 1
    return [place for place in found if operations[place].invoked <= earliest]
