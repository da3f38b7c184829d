"""One version: everything that can be read at a root hash. It never changes, so reading needs no lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from svc.errors import InvalidInput, NotFound
from svc.executor import in_turns
from svc.hashing import Hash
from svc.objects.content import read_range, stored_chunks
from svc.objects.store import ObjectStore
from svc.paths import Path, format_path, parse_path
from svc.tree import (
    Change,
    Entry,
    EntryKind,
    Totals,
    diff,
    entries,
    entry_count,
    walk,
    walk_files,
)

__all__ = ["MAXIMUM_LINK_HOPS", "Version"]

MAXIMUM_LINK_HOPS = 32

_SYMLINK = EntryKind.SYMLINK  # a member is read through its class for ten times the price


class Version:
    """A readable state.

    Args:
        objects: the database's objects.
        root: root hash of the state.
    """

    __slots__ = ("_objects", "root")

    def __init__(self, objects: ObjectStore, root: Hash) -> None:
        self._objects = objects
        self.root = root

    @property
    def is_collected(self) -> bool:
        """Whether nothing can be read from it: a view got it with a commit that lies before the horizon."""
        return False

    def get(self, path: Path) -> Entry | None:
        """Returns what stands at a path, or None. Links are not followed."""
        return self._objects.resolve(self.root, path)

    def follow(self, path: Path) -> tuple[Path, Entry]:
        """Returns where a path leads when every link on the way is followed, and what stands there.

        Raises:
            NotFound: nothing is there, or a link dangles.
            InvalidInput: the chain has more than 32 links or runs in a circle.
        """
        found, entry = self.follow_parents(path)
        if entry is None:
            raise NotFound("Nothing is at this path.", path=format_path(path))
        return found, entry

    def follow_parents(
        self, path: Path, *, last: bool = True, may_pass: Callable[[Path], bool] | None = None
    ) -> tuple[Path, Entry | None]:
        """As ``follow``, but a missing entry is None; with ``last=False`` a link at the end is kept.

        Writes use it to find where a path below a linked directory really lies.

        Args:
            path: any path.
            last: whether a link at the end of the path is followed.
            may_pass: called with the path of each link on the way. Where it says no, the link is not
                followed: the path as it is by then comes back, with None.
        """
        entry = self.get(path)
        if entry is not None and (entry.kind is not _SYMLINK or not last):
            return path, entry
        return self._follow_links(path, last, may_pass)

    def _follow_links(
        self, path: Path, last: bool, may_pass: Callable[[Path], bool] | None
    ) -> tuple[Path, Entry | None]:
        hops = 0
        position = 0
        while position < len(path):
            position += 1
            prefix = path[:position]
            entry = self.get(prefix)
            if entry is None:
                return path, None
            if entry.kind is _SYMLINK and (last or position < len(path)):
                if may_pass is not None and not may_pass(prefix):
                    return path, None
                hops += 1
                if hops > MAXIMUM_LINK_HOPS:
                    raise InvalidInput(
                        f"The link leads through more than {MAXIMUM_LINK_HOPS} links, or in a circle.",
                        path=format_path(prefix),
                    )
                path = parse_path(entry.target or "/") + path[position:]
                position = 0
        return path, self.get(path)

    def entries(
        self, path: Path, *, after: str | None = None, offset: int = 0, reverse: bool = False
    ) -> Iterator[tuple[str, Entry]]:
        """Yields (name, entry) of a directory in name order, from any point at once.

        Raises:
            NotFound: no directory is there.
        """
        return entries(self._objects, self._directory(path), after=after, offset=offset, reverse=reverse)

    def entry_count(self, path: Path) -> int:
        """Returns how many entries a directory has; does not walk them."""
        return entry_count(self._objects, self._directory(path))

    def walk(
        self,
        path: Path = (),
        *,
        after: Path | None = None,
        files_only: bool = False,
        max_depth: int = -1,
    ) -> Iterator[tuple[Path, Entry]]:
        """Yields (path, entry) of everything below a directory, depth first, in path order.

        Args:
            path: the directory; paths that are yielded are absolute.
            after: start behind this absolute path.
            files_only: leave directories out.
            max_depth: 0 yields the children only; -1 everything.

        Other requests run now and then, as with ``pause``; so they do in ``diff``.
        """
        return in_turns(
            walk(self._objects, self.root, path, after=after, files_only=files_only, max_depth=max_depth)
        )

    def walk_files(
        self,
        path: Path = (),
        *,
        after: Path | None = None,
        offset: int = 0,
        max_depth: int = -1,
        enters: Callable[[Path], bool] | None = None,
    ) -> Iterator[tuple[Path, Entry | None]]:
        """Yields (path, entry) of files below a directory, and (path, None) of directories that hold some.

        The order is that of ``walk``. What holds no file costs nothing: the number of steps bounds the work.

        Args:
            path: the directory; paths that are yielded are absolute.
            after: start behind this absolute path, in O(depth * log n).
            offset: how many files to leave out, in O(depth * log n); only where all directories are entered.
            max_depth: 0 enters no subdirectory, n that many levels, -1 all.
            enters: whether to enter a directory.
        """
        return walk_files(
            self._objects,
            self.root,
            path,
            after=after,
            offset=offset,
            max_depth=max_depth,
            enters=enters,
        )

    def sibling(self, root: Hash) -> Version:
        """Returns another version of the same database, by a root that is known to be one; not checked.

        Views, which are given versions and no database, reach the state of a fork through it; the hash of a
        directory is the root of what is in it.
        """
        return Version(self._objects, root)

    def diff(self, other: Version, path: Path = (), *, after: Path | None = None) -> Iterator[Change]:
        """Yields what changes from this version to another; the cost follows the changes.

        Args:
            other: the version after.
            path: only what lies at and below it.
            after: start behind this absolute path.
        """
        return in_turns(diff(self._objects, self.root, other.root, path, after=after))

    def differences(
        self, other: Version, *, after: str | None = None
    ) -> Iterator[tuple[str, Entry | None, Entry | None]]:
        """Yields the names in the root directory whose entries differ from another version's, and both.

        Nothing below is looked at: with ``sibling`` of the hashes of two directories a caller goes down
        where it needs to, so that a directory that came or went costs nothing, however much it holds.
        With ``after`` it begins behind that name, at once.
        """
        return self._objects.differences(self.root, other.root, after=after)

    def totals(self, path: Path = ()) -> Totals:
        """Returns what lies below a directory: counts, bytes and times; does not walk it."""
        entry = self.get(path)
        if entry is None or entry.totals is None:
            raise NotFound("No directory is at this path.", path=format_path(path))
        return entry.totals

    def read(self, entry: Entry, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Yields a file's bytes, or a range of them, in verified pieces of at most 256 KiB.

        Raises:
            CorruptRecord: the stored bytes are damaged.
        """
        return read_range(self._objects, entry, start, length)

    def read_all(self, entry: Entry) -> bytes:
        """Returns a file's whole content; only for files that fit into memory."""
        if entry.record is None and entry.size:
            return self._objects.read_chunk(entry.hash, entry.size)
        return b"".join(self.read(entry))

    def chunks(self, entry: Entry) -> list[tuple[Hash, int]]:
        """Returns (hash, bytes) of a file's chunks, in order."""
        return stored_chunks(self._objects, entry)

    def _directory(self, path: Path) -> Hash:
        if not path:
            return self.root
        entry = self.get(path)
        if entry is None or entry.kind is not EntryKind.DIRECTORY:
            raise NotFound("No directory is at this path.", path=format_path(path))
        return entry.hash
