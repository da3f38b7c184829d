"""Callers of earlier requests, with the decisions about them, so that neither is computed twice.

An identity and its rights never change, so a decision is valid for as long as the auth mode returns the same
identity. The mode is asked for every request, or once for every commit (``AuthMode.asked_once_a_commit``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from svc.paths import Path
from svc.pipeline.permission import may_somewhere, permitted
from svc.plugins.contracts import Identity, Operation

if TYPE_CHECKING:
    from svc.database import Head

__all__ = ["Caller", "KnownCallers"]

_MOST_CALLERS = 4096
_MOST_DECISIONS = 16_384


class Caller:
    """One identity, with what was decided about it.

    ``head`` is the commit at which the mode has said who this is, None if it is asked for every request;
    ``ends_s`` is infinite for credentials that never end. ``decisions`` has what is permitted at a path, as
    the bits of ``Operation.bit``, unless a directory is meant that may be no more than on the way.
    """

    __slots__ = (
        "_known",
        "_somewhere",
        "challenge",
        "decisions",
        "ends_s",
        "head",
        "identity",
        "is_unrestricted_root",
    )

    def __init__(
        self, identity: Identity, challenge: str = "Bearer", known: KnownCallers | None = None
    ) -> None:
        self.identity = identity
        self.is_unrestricted_root = identity.is_unrestricted_root
        self.challenge = challenge
        self.head: Head | None = None
        self.ends_s = math.inf if identity.expires_ms is None else identity.expires_ms / 1_000
        self.decisions: dict[Path, int] = {}
        self._somewhere: dict[Operation, bool] = {}
        self._known = known

    def may_somewhere(self, operation: Operation) -> bool:
        """Whether there may be a path to which the caller may do an operation; decided once."""
        found = self._somewhere.get(operation)
        if found is None:
            found = self._somewhere[operation] = may_somewhere(self.identity, operation)
        return found

    def decide(self, path: Path) -> int:
        """Returns what is permitted on a path, and keeps it in ``decisions``."""
        mask = self.decisions[path] = permitted(self.identity, path)
        if self._known is not None:
            self._known.count_decision()
        return mask


class KnownCallers:
    """The callers of one process by ``Authorization`` field (None: without one). Bounded; safe in threads."""

    def __init__(self) -> None:
        self.by_authorization: dict[str | None, Caller] = {}
        self._decisions = 0

    def remember(
        self, authorization: str | None, identity: Identity, challenge: str, head: Head | None
    ) -> Caller:
        """Returns the caller with this identity: the one of before where that had the very same."""
        callers = self.by_authorization
        caller = callers.get(authorization)
        if caller is None or caller.identity is not identity or caller.challenge != challenge:
            if len(callers) >= _MOST_CALLERS:
                self.forget()
                callers = self.by_authorization
            caller = callers[authorization] = Caller(identity, challenge, self)
        caller.head = head
        return caller

    def count_decision(self) -> None:
        """Counts a decision that a caller keeps; forgets all callers when they are too many."""
        self._decisions += 1
        if self._decisions >= _MOST_DECISIONS:
            self.forget()

    def forget(self) -> None:
        """Forgets all callers; requests that are under way keep theirs."""
        self.by_authorization = {}
        self._decisions = 0
