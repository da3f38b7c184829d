"""Work of a view that is not part of a commit, in transactions of its own.

Between two of them a view may keep a half-done merge or the like in memory. That is valid only while no other
process has written to its data: LMDB's transaction numbers count every transaction that changed something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import lmdb

from svc.database.version import Version
from svc.database.view import View
from svc.database.view_storage import ViewStorage

__all__ = ["More", "ViewWork"]

More: TypeAlias = bool | Callable[[], None]
"""Whether a view has more to do, or what waits until it may have: called behind the transaction."""


class _Going(NamedTuple):
    view: View
    storage: ViewStorage


class ViewWork:
    """The work of one view in one opening of a database; called in write transactions only."""

    def __init__(self) -> None:
        self._going: _Going | None = None
        # Number of the last transaction that changed something, as far as all of them were ours.
        self._written = -1

    def look(self, transaction: lmdb.Transaction[bytes]) -> None:
        """Finds out whether somebody else has written since; called when a transaction begins."""
        if transaction.id() != self._written + 1:
            self._going = None

    def note(self, transaction: lmdb.Transaction[bytes], *, changes: bool) -> None:
        """Notes a transaction of ours; called before it is committed."""
        self._written = transaction.id() if changes else transaction.id() - 1

    def forget(self) -> None:
        """Lets the next work begin with what is stored: a transaction was lost."""
        self._going = None

    def run(
        self,
        view: View,
        at: Version,
        new_storage: ViewStorage,
        should_stop: Callable[[ViewStorage], bool],
    ) -> tuple[More, bool]:
        """Lets the view work; returns whether it has more to do, and whether it changed something."""
        going = self._going
        if going is None or going.view is not view:
            going = self._going = _Going(view, new_storage)
        else:
            going.storage.take_over(new_storage)
        storage = going.storage
        more = view.work(storage, at, lambda: should_stop(storage))
        storage.write()
        return more, bool(storage.changes)
