"""What an open database says of its versions: how they are read, which one a text means, which are left."""

from __future__ import annotations

from collections.abc import Iterator

from svc.database.availability import Availability
from svc.database.commit_access import CommitAccess
from svc.database.head import Head
from svc.database.holds import Hold, Holds
from svc.database.naming import head_at, named_version
from svc.database.references import reference_path, references
from svc.database.version import Version
from svc.errors import InvalidInput, NotFound
from svc.hashing import Hash, parse_hash

__all__ = ["VersionAccess"]


class VersionAccess(CommitAccess):
    """The part of ``Database`` that reads and names versions."""

    _availability: Availability
    _present: tuple[Head | None, Version]
    _holds: Holds

    def at(self, root: Hash | None = None) -> Version:
        """Returns a readable version.

        Args:
            root: the version's root hash; None means HEAD as it is now.

        Raises:
            VersionCollected: the version was collected.
            NotFound: no commit and no ref ever had this root.
        """
        if root is None:
            if self._closed:
                self._require_open()
            head = self._state.head()
            seen, version = self._present
            return version if seen is head else self.version_at(head)
        self.require_version(root)
        return Version(self._state.objects, root)

    def system(self) -> Version:
        """Returns the system tree as it is now."""
        return Version(self._state.objects, self.head().system_root)

    def version_at(self, head: Head) -> Version:
        """Returns the version that a head names, which ``head`` gave; reads nothing."""
        seen, version = self._present
        if seen is not head:
            version = Version(self._state.objects, head.root)
            self._present = (head, version)
        return version

    def version_of(self, root: Hash) -> Version:
        """Returns a version by a root that is known to be one (a commit's own); not checked."""
        return Version(self._state.objects, root)

    def resolve_version(
        self,
        *,
        snapshot: str | None = None,
        version: str | None = None,
        fork: str | None = None,
        at: int | None = None,
    ) -> Hash:
        """Returns the root that a reader named: the first of these that is given, else HEAD's.

        Args:
            snapshot: name of a snapshot.
            version: a root hash in hex.
            fork: name of a fork.
            at: a time in Unix milliseconds; HEAD as it was then.

        Raises:
            InvalidInput: the version is not 64 hex digits.
            VersionCollected: the version that is meant was collected.
            NotFound: there is no such snapshot, version or fork, or no commit of that time.
        """
        if snapshot is not None:
            return self._named_root("snapshots", snapshot)
        if version is not None:
            root = parse_hash(version)
            if root is None:
                raise InvalidInput("A version is a root hash of 64 hex digits.", field="version")
            self.require_version(root)
            return root
        if fork is not None:
            return self._named_root("forks", fork)
        return self.head().root if at is None else self.head_at(at)

    def head_at(self, time_ms: int) -> Hash:
        """Returns HEAD's root as the last commit of a time or before left it; O(log n) of the commits.

        Args:
            time_ms: Unix milliseconds; a time to come means HEAD as it is.

        Raises:
            VersionCollected: it was collected.
            NotFound: the first commit is later.
        """
        return head_at(self, time_ms)

    def named_version(self, text: str) -> Hash:
        """Returns the root of a version that a person named.

        Args:
            text: ``HEAD``, a root hash of 64 hex digits, ``snapshots/<name>``, ``forks/<name>``, a snapshot's
                name alone, or a time as ``parse_time`` takes it; tried in this order.

        Raises:
            VersionCollected: the version that is meant was collected.
            NotFound: none of them exists; the message says what was tried.
        """
        return named_version(self, text)

    def require_version(self, root: Hash) -> None:
        """Raises unless a version can be read.

        Raises:
            VersionCollected: it was collected.
            NotFound: no commit and no ref ever had this root.
        """
        self._require_open()
        self._availability.require_version(root)

    def hold_version(self, *roots: Hash) -> Hold:
        """Keeps versions readable until the hold is released: for what reads long, such as a download.

        What reads a little need not: it is done before a collection that begins can destroy anything.

        Args:
            roots: roots that commits or refs name.

        Raises:
            VersionCollected: one of them was collected; nothing is held then.
        """
        self._require_open()
        hold = self._holds.take()
        try:
            for root in roots:
                self._availability.require(root)
        except BaseException:
            hold.release()
            raise
        return hold

    def was_just_collected(self) -> bool:
        """Whether a collection destroys something now, or did so in the last seconds."""
        return self._availability.has_just_changed()

    def is_available(self, root: Hash) -> bool:
        """Whether the tree of a root that a commit names can be read: it was not collected; microseconds."""
        return self._availability.has(root)

    def require_available(self, root: Hash) -> None:
        """Raises ``VersionCollected`` unless the tree of a root that a commit names can be read."""
        self._availability.require(root)

    def available_commits(self) -> range:
        """Returns the numbers of the commits whose trees are whole; those of all refs are whole too."""
        return self._availability.commits()

    def refs(self, kind: str | None = None, *, system: Version | None = None) -> Iterator[tuple[str, Hash]]:
        """Yields (name, root) of the named refs, or of one kind (``snapshots``); None: as they are now."""
        return references(self.system() if system is None else system, kind)

    def _named_root(self, kind: str, name: str) -> Hash:
        entry = self.system().get(reference_path(f"{kind}/{name}"))
        if entry is None:
            raise NotFound(f"There is no {kind[:-1]} of this name.", name=name)
        return entry.hash
