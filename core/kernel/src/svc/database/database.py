"""The database: one object that reads at any version, commits, and follows its own feed.

It works as a library without a server, from threads as well as under gevent, and from several
processes at once; each process opens it for itself, after any fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path as FilePath
from types import TracebackType
from typing import Self

from svc.database.catch_up import Progress
from svc.database.commit import DatabaseTotals
from svc.database.commit_access import CommitAccess
from svc.database.commit_feed import CommitFeed
from svc.database.committer import CommitRequest, Committer
from svc.database.content_checks import ContentChecks, PathCheck
from svc.database.findings import database_findings
from svc.database.head import Head
from svc.database.lost import lost_message
from svc.database.naming import head_at, named_version
from svc.database.opening import Opened, open_state
from svc.database.references import HEAD_NAME, reference_path, references
from svc.database.transaction import Transaction
from svc.database.version import Version
from svc.database.view_set import ViewSet
from svc.database.views import BatchView, View, ViewReader
from svc.errors import DatabaseClosed, InvalidInput, NotFound, ReadOnly
from svc.executor import Executor, current_executor
from svc.findings import Finding
from svc.hashing import Hash, ObjectKind, hash_object, parse_hash
from svc.limits import MAXIMUM_TREE_ENTRIES
from svc.log import NO_BACKENDS, LogPlace, StorageBackend, shown_location
from svc.objects.chunking import MAXIMUM_CHUNK, Readable
from svc.objects.content import (
    ChunkStream,
    ContentWriter,
    StoredContent,
    is_place_of_user_chunk,
    is_user_chunk,
)
from svc.objects.read_cache import CACHE_BYTES
from svc.objects.store import EMPTY_ROOT, ObjectStore, PendingObjects, add_object

__all__ = ["Database"]

_SYNC_AHEAD = 1024 * 1024


class Database(CommitAccess):
    """An open database.

    Args:
        location: path of the ``.svcdb`` file, beside which what can be rebuilt lies in ``<path>.d``; or the
            URL of a log on another medium.
        read_only: open for reading; nothing is written, and writes raise ``ReadOnly``.
        create: make the database when it is missing.
        progress: called with (bytes done, bytes in all) while the key index is made anew.
        max_tree_entries: most files, links and directories of a tree; what would make more is refused.
        executor: where what blocks runs: syncs, waits for locks, hashing of much, computing views. None means
            that of this process, which runs everything where it is called unless a server set another.
        backends: what opens URLs, by scheme: ``plugins.registries.storage_backends.values``, or your own.
        cache_bytes: memory that what reading has learned takes at most, about.

    Raises:
        UsageError: no backend knows the scheme of the URL.
        DatabaseNotFound: there is none, and ``create`` is false.
        ForeignFile: the file is something else, or of another byte order.
        UnsupportedFormat: it is of a format that this program does not know.
        TruncatedFile, CorruptRecord: it is damaged; or, for writing, a commit that was durable is not in it
            any more. Nothing was changed then; open it for reading to see what is left.
        ReadOnly: its medium cannot be written, and ``read_only`` is false.

    Blocks while it opens; a clean database opens in a few milliseconds.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        read_only: bool = False,
        create: bool = True,
        progress: Progress | None = None,
        max_tree_entries: int = MAXIMUM_TREE_ENTRIES,
        backends: Mapping[str, StorageBackend] = NO_BACKENDS,
        executor: Executor | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self.executor = executor if executor is not None else current_executor()
        self.location = shown_location(location)
        self.read_only = read_only
        self._process = os.getpid()
        self._closed = False
        self._opened = open_state(
            location,
            read_only=read_only,
            create=create and not read_only,
            progress=progress,
            backends=backends,
            executor=self.executor,
        )
        self._state = self._opened.state
        self._state.objects.cache.limit(cache_bytes)
        self._state.objects.explain_missing = partial(lost_message, self)
        self._committer = Committer(self._state, max_tree_entries)
        store = partial(ContentWriter, self._state.objects, begin_blocking=self.executor.begin)
        self._writer, self._system_writer = store(), store(system=True)
        self._feed = CommitFeed(self._state)
        self._checks = ContentChecks()
        self._bring_checks: Callable[[], Iterable[PathCheck]] | None = None
        self._views = ViewSet(self, self._opened.directory / "views")
        # A head and its version: one attribute, so that threads see a pair.
        self._present: tuple[Head | None, Version] = (None, Version(self._state.objects, EMPTY_ROOT))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the database; the last orderly close leaves an index that needs no rebuilding."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._process:
            return
        try:
            self._views.close()
            if not self.read_only:
                self._state.leave_clean_index()
                if self._state.log.exclude_others():
                    self._views.remove_other_formats()
        finally:
            self._state.close()
            self._opened.discard_temporary()

    # -- what it is ----------------------------------------------------------------------------

    @property
    def database_id(self) -> bytes:
        """16 bytes that name this database; a copy of the file has the same."""
        return self._state.log.database_id

    @property
    def objects(self) -> ObjectStore:
        """The object store, for the kernel's own use."""
        return self._state.objects

    @property
    def path(self) -> FilePath:
        """The database's file.

        Raises:
            InvalidInput: it lies on another medium; ``location`` names it.
        """
        path = getattr(self._state.log.storage, "path", None)
        if not isinstance(path, FilePath):
            raise InvalidInput(f"This takes a database in a file, and {self.location} is none.")
        return path

    @property
    def place(self) -> LogPlace:
        """Where on this machine lies what belongs to the log: its state directory and its lock file."""
        storage = self._state.log.storage
        return LogPlace(storage.state_directory, storage.lock_file)

    @property
    def state_directory(self) -> FilePath:
        """Where what can be rebuilt lies; plugins keep such data in a directory of their own in it."""
        return self._opened.directory

    @property
    def opening(self) -> Opened:
        """What the opening found, for the kernel's own use."""
        return self._opened

    @property
    def recovered_bytes(self) -> int:
        """Bytes of an incomplete append that opening cut off; 0 after an orderly close."""
        return self._opened.recovery.cut_bytes if self._opened.recovery is not None else 0

    def drop_caches(self) -> None:
        """Forgets what reading has learned; it is read again when it is needed."""
        self._state.objects.cache.clear()

    def findings(self) -> tuple[Finding, ...]:
        """Returns what is wrong with the database; microseconds, and does not block."""
        self._require_open()
        return tuple(database_findings(self))

    def totals(self) -> DatabaseTotals:
        """Returns exact totals at HEAD; the cost does not depend on how much there is."""
        sequence = self.head().sequence
        return self.commit(sequence).totals if sequence else DatabaseTotals()

    # -- reading -------------------------------------------------------------------------------

    def at(self, root: Hash | None = None) -> Version:
        """Returns a readable version.

        Args:
            root: the version's root hash; None means HEAD as it is now.

        Raises:
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
            NotFound: the first commit is later.
        """
        return head_at(self, time_ms)

    def named_version(self, text: str) -> Hash:
        """Returns the root of a version that a person named.

        Args:
            text: ``HEAD``, a root hash of 64 hex digits, ``snapshots/<name>``, ``forks/<name>``, a snapshot's
                name alone, or a time as ``parse_time`` takes it; tried in this order.

        Raises:
            NotFound: none of them exists; the message says what was tried.
        """
        return named_version(self, text)

    def require_version(self, root: Hash) -> None:
        """Raises NotFound unless some commit or ref has this root."""
        self._require_open()
        if root == EMPTY_ROOT or self._state.index.was_root(root):
            return
        if root in {ref_root for _, ref_root in self.refs()}:
            return
        raise NotFound("There is no version with this hash.", version=root.hex())

    def refs(self, kind: str | None = None, *, system: Version | None = None) -> Iterator[tuple[str, Hash]]:
        """Yields (name, root) of the named refs, or of one kind (``snapshots``); None: as they are now."""
        return references(self.system() if system is None else system, kind)

    def _named_root(self, kind: str, name: str) -> Hash:
        entry = self.system().get(reference_path(f"{kind}/{name}"))
        if entry is None:
            raise NotFound(f"There is no {kind[:-1]} of this name.", name=name)
        return entry.hash

    # -- writing -------------------------------------------------------------------------------

    def store(
        self,
        stream: Readable,
        *,
        limit: int | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> StoredContent:
        """Reads a stream to its end and stores its content, ready to be put at a path.

        Memory is bounded; no lock is held. What no transaction takes is garbage.

        Args:
            stream: anything with ``read(size)``.
            limit: most bytes that are taken.
            on_bytes: called with the size of each piece, for progress.

        Raises:
            PayloadTooLarge: the stream is longer than ``limit``.
            InsufficientStorage: the disk is full.
            DatabaseLatched: the disk failed.
            ReadOnly: the database is open for reading.
        """
        self._require_writable()
        content = self._writer.store_stream(stream, limit=limit, on_bytes=on_bytes)
        if content.size > _SYNC_AHEAD:
            # The bulk goes to disk here, so that the commit's sync, which others wait for, is short.
            self._state.sync_ahead()
        return content

    def store_bytes(self, content: bytes, *, system: bool = False) -> StoredContent:
        """Stores a content that is in memory."""
        self._require_writable()
        if system:
            return self._system_writer.store_bytes(content)
        return self._writer.store_bytes(content)

    def transaction(
        self, *, actor: str | None = None, message: str | None = None, ref: str = HEAD_NAME
    ) -> Transaction:
        """Begins a transaction; as a context manager it commits on a clean exit.

        Args:
            actor: who acts (a user id), for the log.
            message: what for, for the log.
            ref: the tree that it changes: ``HEAD``, or a named ref such as ``forks/draft``.

        Raises:
            ReadOnly: the database is open for reading.
        """
        self._require_writable()
        return Transaction(self, actor, message, ref)

    def submit(self, request: CommitRequest) -> None:
        """Commits a request; the way of transactions into the log."""
        self._require_writable()
        self._committer.submit(request)

    # -- chunks that clients upload ahead ----------------------------------------------------------

    def has_chunk(self, hash: Hash) -> bool:
        """Whether a chunk is stored; the system's chunks never are, nor are those that were found damaged."""
        self._require_open()
        return is_user_chunk(self._state.objects, hash)

    def chunk_size(self, hash: Hash) -> int:
        """Returns the bytes of a chunk, without reading them.

        Raises:
            NotFound: there is no such chunk.
        """
        self._require_open()
        place = self._state.objects.index.find(hash)
        if place is None or not is_place_of_user_chunk(place):
            raise NotFound("There is no such chunk.", hash=hash.hex())
        return place.raw_length

    def chunk(self, hash: Hash) -> bytes:
        """Returns a chunk's bytes.

        Raises:
            NotFound: there is no such chunk.
        """
        self._require_open()
        if not is_place_of_user_chunk(self._state.objects.index.find(hash)):
            raise NotFound("There is no such chunk.", hash=hash.hex())
        return self._state.objects.read(hash, ObjectKind.CHUNK)

    def put_chunk(self, hash: Hash, content: bytes) -> bool:
        """Stores a chunk durably; returns False when it was there.

        Args:
            hash: what the client says it is.
            content: at most 256 KiB.

        Raises:
            InvalidInput: the bytes have another hash, or are too many.
        """
        self._require_writable()
        if len(content) > MAXIMUM_CHUNK or not content:
            raise InvalidInput(f"A chunk has 1 to {MAXIMUM_CHUNK} bytes.", limit=MAXIMUM_CHUNK)
        if hash_object(ObjectKind.CHUNK, content) != hash:
            raise InvalidInput("The bytes do not have this hash.", hash=hash.hex())
        if self.has_chunk(hash):
            return False
        pending = PendingObjects()
        add_object(pending, ObjectKind.CHUNK, hash, content)
        self._committer.submit(CommitRequest(HEAD_NAME, [], pending))
        return True

    def content_of_chunks(
        self, hashes: list[Hash], *, size: int | None = None, content_hash: Hash | None = None
    ) -> StoredContent:
        """Returns the content that chunks make up, read and verified.

        The bytes are cut anew with the database's own boundaries, so that the same content is the
        same version however it came in; chunks that are cut alike cost nothing.

        Args:
            hashes: the chunks in order.
            size: what the client says the content's size is.
            content_hash: what the client says its hash is.

        Raises:
            InvalidInput: chunks are missing (``missing`` lists them), or size or hash differ.
        """
        content = self.store(ChunkStream(self._state.objects, hashes))
        if size is not None and size != content.size:
            raise InvalidInput(f"The chunks make {content.size} bytes, not {size}.", field="size")
        if content_hash is not None and content_hash != content.content_hash:
            raise InvalidInput("The chunks do not have this content hash.", field="content_hash")
        return content

    # -- views ---------------------------------------------------------------------------------

    def register_view(self, view: View | BatchView, *, replace: bool = False) -> ViewReader:
        """Makes a view known, and returns the way to read it.

        Args:
            view: the view; where one of its name is registered, that one stays.
            replace: whether this one takes its place all the same, on the same data.
        """
        return self._views.register(view, replace=replace)

    def register_views_later(self, bring: Callable[[], Iterable[View | BatchView]]) -> None:
        """Registers what ``bring`` gives when a view is first asked for that is not registered."""
        self._views.bring = bring

    def view(self, name: str) -> ViewReader:
        """Returns a view by its name.

        Raises:
            NotFound: no such view is registered.
        """
        self._require_open()
        return self._views.get(name)

    def views(self) -> dict[str, ViewReader]:
        """Returns all registered views by name."""
        return self._views.all()

    # -- checks of contents --------------------------------------------------------------------

    def content_checks(self) -> ContentChecks:
        """The checks that contents must pass before they are committed."""
        bring, self._bring_checks = self._bring_checks, None
        if bring is not None:
            self._checks = ContentChecks(bring())
        return self._checks

    def use_content_checks(self, checks: Iterable[PathCheck]) -> None:
        """Lets commits of this object pass other checks from now on: those of the plugins in use."""
        self._bring_checks = None
        self._checks = ContentChecks(checks)

    def use_content_checks_later(self, bring: Callable[[], Iterable[PathCheck]]) -> None:
        """Lets commits pass what ``bring`` gives when something is first committed."""
        self._bring_checks = bring

    # -- internal ------------------------------------------------------------------------------

    def _require_writable(self) -> None:
        self._require_open()
        if self.read_only:
            raise ReadOnly("The database is open for reading only.")
        if os.getpid() != self._process:
            raise DatabaseClosed("The database was opened before a fork; open it in this process.")
