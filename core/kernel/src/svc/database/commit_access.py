"""What an open database says of its commits: HEAD, each of them by its number, and all in order."""

from __future__ import annotations

import time
from collections.abc import Iterator

from svc.database.commit import Commit
from svc.database.commit_feed import CommitFeed
from svc.database.head import Head
from svc.database.naming import commit_state
from svc.database.state import SharedState
from svc.errors import DatabaseClosed, NotFound
from svc.hashing import Hash

__all__ = ["CommitAccess"]

_POLL_SECONDS = 0.005


class CommitAccess:
    """The part of ``Database`` that reads commits."""

    _state: SharedState
    _feed: CommitFeed
    _closed: bool

    def head(self) -> Head:
        """Returns the state after the last commit of any process; less than a microsecond.

        The same object comes back for as long as there is no further commit.
        """
        if self._closed:
            self._require_open()
        return self._state.head()

    def commit(self, sequence: int) -> Commit:
        """Returns a commit by its number.

        Raises:
            NotFound: there is none.
        """
        self._require_open()
        return self._state.read_commit(sequence)[0]

    def commit_of(self, root: Hash) -> int | None:
        """Returns the number of the first commit that brought HEAD to a root, or None."""
        self._require_open()
        return self._state.index.first_commit_of_root(root)

    def last_commit_of(self, root: Hash) -> int | None:
        """Returns the number of the last commit that left HEAD or a ref that it moved at a root, or None."""
        self._require_open()
        return self._state.index.last_commit_of_root(root)

    def commit_state(self, sequence: int) -> tuple[int, Hash]:
        """Returns a commit's time in Unix milliseconds and HEAD's root after it; cheap, whatever it did.

        Raises:
            NotFound: there is none.
        """
        self._require_open()
        return commit_state(self._state.commit_payload(sequence)[0])

    def read_commit(self, sequence: int) -> tuple[Commit, Hash]:
        """Returns a commit and the identity of its record; raises as ``commit``."""
        self._require_open()
        return self._state.read_commit(sequence)

    def commit_identity(self, sequence: int) -> Hash | None:
        """Returns the hash of a commit's record; None where there is no such commit."""
        self._require_open()
        try:
            return self._state.commit_payload(sequence)[1]
        except NotFound:
            return None

    def commits(self, after: int = 0) -> Iterator[Commit]:
        """Yields the commits after a number, in order, up to HEAD as it is when they are reached."""
        return (commit for commit, _ in self.feed(after))

    def feed(self, after: int = 0) -> Iterator[tuple[Commit, Hash]]:
        """As ``commits``, but yields the identity of each commit's record too."""
        return self._feed.after(after)

    def wait_for_commit(self, after: int, timeout: float | None = None) -> bool:
        """Waits until HEAD is past a commit; returns whether it is. Blocks, letting greenlets run.

        Args:
            after: number of the commit that HEAD shall be past.
            timeout: seconds; None waits for ever.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.head().sequence <= after:
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _require_open(self) -> None:
        if self._closed:
            raise DatabaseClosed("The database is closed.")
