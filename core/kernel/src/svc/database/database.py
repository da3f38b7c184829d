"""The database: one object that reads at any version, commits, and follows its own feed.

It works as a library without a server, from threads as well as under gevent, and from several
processes at once; each process opens it for itself, after any fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path as FilePath
from types import TracebackType
from typing import Self

from svc.database.availability import Availability
from svc.database.catch_up import Progress
from svc.database.collection.pins import Pins
from svc.database.collection_access import CollectionAccess
from svc.database.commit import DatabaseTotals
from svc.database.commit_feed import CommitFeed
from svc.database.committer import CommitRequest, Committer
from svc.database.content_checks import ContentChecks, PathCheck
from svc.database.findings import database_findings
from svc.database.head import Head
from svc.database.holds import Holds
from svc.database.lost import Lost, lost_message
from svc.database.opening import Opened, open_state
from svc.database.references import HEAD_NAME
from svc.database.transaction import Transaction
from svc.database.version import Version
from svc.database.version_access import VersionAccess
from svc.database.view import View
from svc.database.view_set import ViewSet
from svc.database.views import ViewReader
from svc.errors import CorruptRecord, DatabaseClosed, InvalidInput, NotFound, ReadOnly
from svc.executor import Executor, current_executor
from svc.findings import Finding
from svc.hashing import Hash, ObjectKind, hash_object
from svc.limits import MAXIMUM_TREE_ENTRIES
from svc.log import NO_BACKENDS, LogPlace, StorageBackend, shown_location
from svc.objects.chunking import MAXIMUM_CHUNK, Readable
from svc.objects.content import ChunkStream, ContentWriter, StoredContent, is_user_chunk
from svc.objects.key_index import unpack_places
from svc.objects.read_cache import CACHE_BYTES
from svc.objects.store import EMPTY_ROOT, OFFERED_CHUNKS, ObjectStore, PendingObjects, add_chunks
from svc.tree import Entry

__all__ = ["Database"]

_SYNC_AHEAD = 1024 * 1024


class Database(VersionAccess, CollectionAccess):
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

    Attributes:
        max_tree_entries: as it was given; who opens the database for this opening in another process gives it
            there.

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
        self.max_tree_entries = max_tree_entries
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
        log = self._state.log
        self._holds = Holds(log.storage, log.state_directory, read_only)
        self._pins = Pins(log.state_directory / "pins")
        if not read_only:
            self._pins.begin()
        store = partial(
            ContentWriter,
            self._state.objects,
            begin_blocking=self.executor.begin,
            take_hold=self._holds.take,
        )
        self._writer, self._system_writer = store(), store(system=True)
        self._feed = CommitFeed(self._state)
        self._checks = ContentChecks()
        self._bring_checks: Callable[[], Iterable[PathCheck]] | None = None
        self._availability = Availability(self)
        self._views = ViewSet(self, self._opened.directory / "views")
        # A system root, and whether repairs have lost anything by then.
        self._lost: tuple[Hash | None, bool] = (None, False)
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
            self._holds.close()
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

    # -- writing -------------------------------------------------------------------------------

    def store(
        self,
        stream: Readable,
        *,
        limit: int | None = None,
        on_bytes: Callable[[int], None] | None = None,
        like: Entry | None = None,
    ) -> StoredContent:
        """Reads a stream to its end and stores its content, ready to be put at a path.

        Memory is bounded; no lock is held. What no transaction takes is garbage.

        Args:
            stream: anything with ``read(size)``.
            limit: most bytes that are taken.
            on_bytes: called with the size of each piece, for progress.
            like: a file that it may be much like, such as the one that it replaces: chunks that both have
                are found faster. Changes nothing else.

        Raises:
            PayloadTooLarge: the stream is longer than ``limit``.
            InsufficientStorage: the disk is full.
            DatabaseLatched: the disk failed.
            ReadOnly: the database is open for reading.
        """
        self._require_writable()
        content = self._writer.store_stream(stream, limit=limit, on_bytes=on_bytes, like=like)
        if sum([place[1] for place in unpack_places(content.pending.placed.values())]) > _SYNC_AHEAD:
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
        self,
        *,
        actor: str | None = None,
        message: str | None = None,
        ref: str = HEAD_NAME,
        checks_contents: bool = True,
    ) -> Transaction:
        """Begins a transaction; as a context manager it commits on a clean exit.

        Args:
            actor: who acts (a user id), for the log.
            message: what for, for the log.
            ref: the tree that it changes: ``HEAD``, or a named ref such as ``forks/draft``.
            checks_contents: whether plugins are asked about the contents that it puts; not for what another
                database has accepted, and this one must take too.

        Raises:
            ReadOnly: the database is open for reading.
        """
        self._require_writable()
        return Transaction(self, actor, message, ref, checks_contents=checks_contents)

    def submit(self, request: CommitRequest) -> None:
        """Commits a request; the way of transactions into the log."""
        self._require_writable()
        self._committer.submit(request)

    def commit_alone(self, request: CommitRequest, prepare: Callable[[Head], None]) -> None:
        """Commits a request in a commit of its own, right after ``prepare`` under the same lock."""
        self._require_writable()
        self._committer.submit_alone(request, prepare)

    # -- chunks that clients upload ahead ----------------------------------------------------------

    def has_chunk(self, hash: Hash) -> bool:
        """Whether a chunk is stored and stays, and nobody found it damaged; the system's never are."""
        self._require_open()
        place = self._state.objects.index.find_stored(hash)
        return place is not None and place.kind == ObjectKind.CHUNK and not place.system

    def is_lost(self, version: Version, entry: Entry) -> bool:
        """Whether a repair could not save a file's content, and nobody has stored it again.

        Args:
            version: where the file is.
            entry: the file.
        """
        system_root = self.head().system_root
        if self._lost[0] != system_root:
            self._lost = system_root, bool(len(Lost.of(self)))
        if not self._lost[1]:
            return False
        try:
            return not all(self.has_chunk(hash) for hash, _ in version.chunks(entry))
        except CorruptRecord:
            return True

    def chunk_size(self, hash: Hash) -> int:
        """Returns the bytes of a chunk, without reading them.

        Raises:
            NotFound: there is no such chunk.
        """
        self._require_open()
        place = self._state.objects.index.find(hash)
        if place is None or not is_user_chunk(self._state.objects, hash):
            raise NotFound("There is no such chunk.", hash=hash.hex())
        return place.raw_length

    def chunk(self, hash: Hash) -> bytes:
        """Returns a chunk's bytes.

        Raises:
            NotFound: there is no such chunk.
        """
        self._require_open()
        if not is_user_chunk(self._state.objects, hash):
            raise NotFound("There is no such chunk.", hash=hash.hex())
        return self._state.objects.read(hash, ObjectKind.CHUNK)

    def put_chunks(self, chunks: Mapping[Hash, bytes]) -> bool:
        """Stores chunks durably, in one commit; returns False when all were there.

        Args:
            chunks: by what the client says that their hashes are; each of at most 256 KiB.

        Raises:
            InvalidInput: bytes have another hash, or are too many.
        """
        self._require_writable()
        for hash, content in chunks.items():
            if len(content) > MAXIMUM_CHUNK or not content:
                raise InvalidInput(f"A chunk has 1 to {MAXIMUM_CHUNK} bytes.", limit=MAXIMUM_CHUNK)
            if hash_object(ObjectKind.CHUNK, content) != hash:
                raise InvalidInput("The bytes do not have this hash.", hash=hash.hex())
        OFFERED_CHUNKS.add(len(chunks))
        with self._holds.take():
            self._pins.add(chunks)
            contains = self._state.objects.index.contains
            new = {hash: content for hash, content in chunks.items() if not contains(hash)}
            if new:
                pending = PendingObjects()
                add_chunks(pending, new)
                self._committer.submit(CommitRequest(HEAD_NAME, [], pending))
        return bool(new)

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

    def register_view(self, view: View, *, replace: bool = False) -> ViewReader:
        """Makes a view known, and returns the way to read it.

        Args:
            view: the view; where one of its name is registered, that one stays.
            replace: whether this one takes its place all the same, on the same data.
        """
        return self._views.register(view, replace=replace)

    def register_views_later(self, bring: Callable[[], Iterable[View]]) -> None:
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
