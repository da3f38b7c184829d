"""The view ``query.index``: it follows the commit feed, and has work of its own."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from svc.errors import InternalError
from svc.plugin import (
    CommitStep,
    Extension,
    Path,
    PluginContext,
    StateFile,
    Version,
    View,
    ViewBatch,
    ViewStorage,
    native_lock,
)
from svc_query.api import INDEX_TYPES, PARSERS
from svc_query.configuration import QueryConfiguration
from svc_query.index_configuration import directory_of
from svc_query.indexing.applying import SMALL_DIRECTORY, IndexBatch, new_job, repair_index
from svc_query.indexing.caches import Caches
from svc_query.indexing.reconciling import Extensions, Reconciler
from svc_query.indexing.rows import IndexRow
from svc_query.indexing.sizes import IndexSize, size_file, size_of
from svc_query.indexing.table import Table, read_state
from svc_query.indexing.working import Worker, is_long

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["INDEX_VIEW", "IndexView", "view_of"]

INDEX_VIEW = "query.index"
_SAY_SIZE_SECONDS = 1.0

# By the id of the database object; the kernel keeps the view as long as that is open.
_views: weakref.WeakValueDictionary[int, IndexView] = weakref.WeakValueDictionary()


class IndexView(View):
    """Keeps the document table and the indexes of a database.

    As it is registered it belongs to none; the kernel binds it to each that is opened. ``caches`` is what the
    process remembers for queries, ``worker`` does the work of the view in this process.
    """

    name = INDEX_VIEW
    format = 4
    keeps_files = True
    starts_at_head = True
    takes_collected = True

    def __init__(self, context: PluginContext | None = None) -> None:
        self._size_due = 0.0
        self._size_file: StateFile[IndexSize] | None = None
        self.caches = Caches()
        self._context = context
        self._table = Table(self._tell_of_damage)
        self.worker = Worker(self._table)
        self._extensions: tuple[object, object, Extensions] | None = None
        self._asked: list[Path] = []
        self._damaged: list[tuple[int, bytes | None]] = []
        self._orders: list[Callable[[Table, Version], None]] = []
        self._mutex = native_lock()

    def bind(self, context: PluginContext) -> IndexView:
        """Returns the view of one database."""
        known = _views.get(id(context.database))
        if known is not None:
            known.release()
        view = _views[id(context.database)] = IndexView(context)
        view._size_file = size_file(context.database.state_directory)
        return view

    @property
    def context(self) -> PluginContext:
        """The plugin in the database."""
        assert self._context is not None, "the view was bound to a database"
        return self._context

    @property
    def extensions(self) -> Extensions:
        """The index types and parsers that are in use now; the same object while they are the same."""
        types, parsers = self.context.extensions(INDEX_TYPES), self.context.extensions(PARSERS)
        found = self._extensions
        if found is None or found[0] is not types or found[1] is not parsers:
            configuration = self.context.configuration or QueryConfiguration()
            made = Extensions(
                {name: one.value for name, one in types.items()},
                {name: one.value for name, one in parsers.items()},
                configuration,
                self._providers((*types.values(), *parsers.values())),
                self.context.is_enabled,
                self.context.is_broken,
            )
            found = self._extensions = types, parsers, made
            self._table.maximum_indexes = configuration.maximum_indexes
            self._table.maximum_documents = configuration.maximum_documents
        return found[2]

    def _providers(self, extensions: Iterable[Extension[Any]]) -> frozenset[str]:
        return frozenset(one.context.plugin_id for one in extensions) - {self.context.plugin_id}

    def start(self, storage: ViewStorage, commit: CommitStep) -> None:
        """Begins at the present tree: few files are brought in at once, others by a job."""
        self._table.begin(storage)
        job = new_job((), "build", commit.after)
        if job.total > SMALL_DIRECTORY:
            self._table.add_job(job)
        else:
            reconciler = Reconciler(self._table, self.extensions, commit.after)
            for path, entry in commit.after.walk_files():
                if entry is not None:
                    reconciler.path(path, entry)
                    directory = directory_of(path)
                    if directory is not None:
                        # A new database may have been configured before this process came to it.
                        self._table.note_configured(directory, commit.commit.sequence)
        state = self._table.change()
        state.sequence = commit.commit.sequence
        self.extensions.note(state)
        self._table.end()

    def begin(self, storage: ViewStorage) -> ViewBatch:
        """Begins a batch of commits; ServiceUnavailable where a plugin of the documents is missing here."""
        self._table.begin(storage)
        missing = self.extensions.missing(self._table.state)
        if missing is not None:
            self.extensions.refuse(missing)
        return IndexBatch(self._table, self.extensions, storage)

    def is_full(self, storage: ViewStorage) -> bool:
        """Whether the tail must be flushed before another commit is taken: every reader has it in memory."""
        state = read_state(storage)
        # Without a plugin that the documents are made with there is no work; the next batch says so.
        return is_long(state) and self.extensions.missing(state) is None

    def work(
        self, storage: ViewStorage, at: Version, should_stop: Callable[[], bool]
    ) -> bool | Callable[[], None]:
        """Does some of what commits left for later."""
        self._table.begin(storage)
        # Whoever asks may be a process that does no other work.
        more = self._write_what_was_asked(at) or self.worker.work(storage, at, self.extensions, should_stop)
        self._say_size(storage)
        self._table.end()
        return more

    def _say_size(self, storage: ViewStorage) -> None:
        now = time.monotonic()
        if self._size_file is not None and now >= self._size_due:
            self._size_due = now + _SAY_SIZE_SECONDS
            self._size_file.beat(size_of(storage, self._table.state))

    def hurry(self, *, hurries: bool) -> None:
        """Says whether all work is to be done now, or what can wait for a quiet moment may."""
        self.worker.hurries = hurries

    def release(self) -> None:
        """Lets another process do the work, where this one was at it."""
        self.worker.release()

    def leave(self) -> bool:
        """Makes the next piece of work let another process go on; returns whether this process is at it.

        Other threads may be at it meanwhile.
        """
        if self.worker.has_lock():
            self.order(lambda table, at: self.worker.pause())
            return True
        return False

    def ask_for_rebuild(self, path: Path) -> None:
        """Makes the next piece of work, in this process, begin a rebuild."""
        with self._mutex:
            self._asked.append(path)

    def ask_for_repair(self, number: int, manifest: bytes | None) -> None:
        """Makes the next piece of work, in this process, make an index anew whose files are damaged.

        Where the index has other files meanwhile, nothing is done.
        """
        with self._mutex:
            self._damaged.append((number, manifest))

    def order(self, work: Callable[[Table, Version], None]) -> None:
        """Lets the next piece of work, in this process, begin with something; see ``indexing.renewing``."""
        with self._mutex:
            self._orders.append(work)

    def take_back(self, work: Callable[[Table, Version], None]) -> None:
        """Takes an order back that was not carried out."""
        with self._mutex:
            self._orders = [one for one in self._orders if one is not work]

    def _tell_of_damage(self, row: IndexRow) -> None:
        name = f"the index {row.type} of {row.field}" if row.type else f"the index {row.field}"
        self.context.database.view(INDEX_VIEW).note_damage(f"{name}: files are damaged or gone")

    def _write_what_was_asked(self, at: Version) -> bool:
        with self._mutex:
            asked, self._asked = self._asked, []
            damaged, self._damaged = self._damaged, []
            orders, self._orders = self._orders, []
        missing = self.extensions.missing(self._table.state) if orders else None
        if missing is not None:
            self.extensions.refuse(missing)
        for work in orders:
            work(self._table, at)
        # Asked every few milliseconds, and nearly always for nothing: the rows are not read for that.
        rows = dict(self._table.indexes().values()) if damaged else {}
        for number, manifest in damaged:
            row = rows.get(number)
            if row is not None and manifest is not None and row.manifest == manifest:
                repair_index(self._table, number, row, at)
        for path in asked:
            job = new_job(path, "rebuild", at, self._table.state.next_number)
            job.reads = True
            self._table.add_job(job)
            for number, row in list(self._table.indexes().values()):
                if row.problem:
                    row.problem = ""
                    self._table.set_index(number, row)
                    repair_index(self._table, number, row, at, damaged=False)
        return bool(asked or damaged or orders)


def view_of(database: Database) -> IndexView:
    """Returns the view of a database that is open in this process; NotFound where the plugin is not used."""
    database.view(INDEX_VIEW)
    view = _views.get(id(database))
    if view is None:
        raise InternalError("The view of the index was not bound to its database.")
    return view
