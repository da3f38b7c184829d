"""Commits that are decided by the state that they change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from svc.errors import NotFound, PreconditionFailed
from svc.plugin import Database, Transaction, Version, attempt

__all__ = ["commit_decided"]

T = TypeVar("T")


def commit_decided(
    database: Database, decide: Callable[[Transaction, Version], T], *, actor: str | None, message: str
) -> T:
    """Commits what a function adds to a transaction, by the system tree as it is; blocks.

    ``decide`` is called with the transaction and the system tree, again after each commit that found another
    state; what it raises goes to the caller. Raises Conflict where the state changed each time.
    """

    def once() -> T:
        transaction = database.transaction(actor=actor, message=message)
        decided = decide(transaction, database.system())
        if len(transaction):
            try:
                transaction.commit()
            except NotFound as error:  # others took away what was to be removed
                raise PreconditionFailed(error.message) from None
        return decided

    return attempt(once, "What this changes")
