"""Ways into the index: a snapshot that holds what was written before, and all work done at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from svc.errors import CorruptRecord, ServiceUnavailable
from svc.plugin import Path, ViewReader, ViewStorage, format_path, pause, without_turn
from svc_query.indexing.counting import count_jobs, count_waiting, first_builds, is_busy
from svc_query.indexing.damage import DamagedIndex
from svc_query.indexing.snapshot import IndexSnapshot
from svc_query.indexing.status import index_status
from svc_query.indexing.view import INDEX_VIEW, IndexView, view_of

if TYPE_CHECKING:
    from svc.plugin import Database

__all__ = ["catch_up_and_work", "finish_work", "read_snapshot", "read_status", "rebuild"]

T = TypeVar("T")

Waited = tuple[Path, Callable[[Path], bool] | None]
"""A path, and which files below it are waited for; None: all."""

_ATTEMPTS = 9
_MOST_REPAIRED = 256
_GRACE_SECONDS = 0.25
_POLL_SECONDS = 0.005
_STANDING_SECONDS = 1.0
"""A first build that has not got on for so long is at nobody's hands."""


class _Behind(Exception):
    """The rows may be older than what the caller must see."""


class _BeingBuilt(Exception):
    """Files are being indexed for the first time."""


class _FilesWaiting(Exception):
    """Changed files have not been read yet."""


def read_snapshot(
    database: Database,
    function: Callable[[IndexSnapshot], T],
    *,
    minimum: int | None,
    wait_until: float,
    waits_for: Sequence[Waited] = (),
    builds: Sequence[Path] = (),
    goes_on: bool = False,
) -> T:
    """Calls a function with the index, once it holds what the caller must see; returns what that returns.

    Blocks. In a server it is called in a request: what the view has to do is done in a thread.

    Args:
        database: the open database.
        function: gets the snapshot, which is valid inside of it alone. It may be called again, from its
            beginning, when the files of an index were replaced while it ran.
        minimum: number of the commit that must be in the index; None means HEAD's, as it is now; 0 waits for
            nothing.
        wait_until: time by ``time.monotonic`` until which to wait.
        waits_for: paths; changed files at and below them must have been read by their parsers, those for
            which the function beside a path says so.
        builds: paths; what indexes files at, above or below them for the first time is waited for, but not
            when the time is over, or when nobody is at it.
        goes_on: whether to go on without an index whose files are damaged, rather than to say so, once it is
            being made anew.

    Raises ServiceUnavailable, with the view and how much is missing, where the index is late, or damaged.
    """
    head = database.head().sequence
    needed = head if minimum is None else min(minimum, head)
    reading = _Reading(database, function, needed, wait_until, list(waits_for), tuple(builds))
    return reading.run(goes_on=goes_on)


class _Reading(Generic[T]):
    """One call of ``read_snapshot``: tries until nothing is missing and no file is replaced meanwhile."""

    def __init__(
        self,
        database: Database,
        function: Callable[[IndexSnapshot], T],
        needed: int,
        wait_until: float,
        pending: list[Waited],
        builds: tuple[Path, ...],
    ) -> None:
        self._at = database.at
        self._reader = database.view(INDEX_VIEW)
        self._view = view_of(database)
        self._function = function
        self._needed = needed
        self._wait_until = wait_until
        self._pending = pending
        self._builds = builds
        self._is_caught_up = False
        self._missing: tuple[int, bytes | None] | None = None

    def run(self, *, goes_on: bool) -> T:
        for attempt in range(_MOST_REPAIRED if goes_on else _ATTEMPTS):
            try:
                return self._reader.read(self._call, minimum=self._needed if self._is_caught_up else 0)
            except _Behind:
                # Or the last commits changed nothing that is indexed: the mark of the view tells.
                if self._reader.applied < self._needed:
                    with _leaving_work(self._reader, self._view):
                        _catch_up(self._reader, self._needed, self._wait_until)
                self._is_caught_up = True
            except _BeingBuilt:
                with _leaving_work(self._reader, self._view):
                    _wait_for_builds(self._reader, self._builds, self._wait_until)
                self._builds = ()
            except _FilesWaiting:
                with _leaving_work(self._reader, self._view):
                    for path, may in self._pending:
                        _wait_for_parsers(self._reader, path, may, self._wait_until)
                self._pending = []
            except DamagedIndex as error:
                self._make_anew(error, goes_on=goes_on)
            except FileNotFoundError:
                # A reader was closed, since another has taken its place; or its files are gone, which shows
                # when they are opened anew.
                if attempt >= _ATTEMPTS // 2:
                    self._view.caches.close()
        raise ServiceUnavailable(
            "The files of the index are replaced again and again; ask again.", view=INDEX_VIEW, retry_after=1
        )

    def _call(self, storage: ViewStorage) -> T:
        view = self._view
        snapshot = IndexSnapshot(storage, view.caches, view.extensions, self._needed, self._at)
        try:
            if not self._is_caught_up and snapshot.moment.state.sequence < self._needed:
                raise _Behind
            if self._builds and first_builds(storage, self._builds):
                raise _BeingBuilt
            if any(
                snapshot.waiting(path) and count_waiting(storage, path, may) for path, may in self._pending
            ):
                raise _FilesWaiting
            return self._call_function(snapshot)
        finally:
            snapshot.close()

    def _call_function(self, snapshot: IndexSnapshot) -> T:
        try:
            return self._function(snapshot)
        except CorruptRecord as error:
            damaged = snapshot.damaged_by(error)
            if damaged is None:
                raise
            raise damaged from error

    def _make_anew(self, error: DamagedIndex, *, goes_on: bool) -> None:
        found = error.number, error.row.manifest
        if error.missing and self._missing != found:
            # It was replaced since the manifest was read, unless the newest one names it too.
            self._missing = found
            return
        refusal = _made_anew(self._reader, self._view, error)
        if not goes_on:
            raise refusal from error


def read_status(
    database: Database,
    path: Path,
    after: str | None,
    limit: int,
    *,
    may_read: Callable[[Path], bool] | None = None,
    wait_until: float,
) -> dict[str, Any]:
    """Returns ``index_status`` as it is now; to who sees everything with ``damage`` of the last hour.

    Indexes whose files turn out to be damaged are made anew from then on. Blocks.
    """
    status = read_snapshot(
        database,
        lambda snapshot: index_status(snapshot, path, after, limit, may_read),
        minimum=0,
        wait_until=wait_until,
        goes_on=True,
    )
    damage = database.view(INDEX_VIEW).damage() if may_read is None else None
    if damage is not None:
        status["damage"] = {"at": damage.at_ms, "reason": damage.reason}
    return status


def _catch_up(reader: ViewReader, needed: int, wait_until: float) -> None:
    applied = reader.applied
    if applied < needed:
        applied = catch_up_and_work(reader, needed, lambda: time.monotonic() >= wait_until)
        if applied < needed:
            _refuse_commits(needed - applied)


def catch_up_and_work(reader: ViewReader, needed: int, should_stop: Callable[[], bool]) -> int:
    """Applies commits, and does the work that must be done between them where no other process does.

    ``should_stop`` is asked every few milliseconds. Returns the number of the last commit in the view; less
    than ``needed`` when it was stopped.
    """
    while True:
        applied = reader.catch_up(needed, should_stop=should_stop)
        if applied >= needed or should_stop():
            return applied
        # The view is full.
        if not (_may_work() and reader.work(should_stop=should_stop)):
            time.sleep(_POLL_SECONDS)
            pause()


@contextmanager
def _leaving_work(reader: ViewReader, view: IndexView) -> Iterator[None]:
    """For waits: others have the turn meanwhile.

    Lets another process go on with work that a query began here: nobody may ever ask this one again.
    """
    try:
        with without_turn():
            yield
    finally:
        if _may_work() and view.leave():
            reader.work(should_stop=lambda: True)


def _made_anew(reader: ViewReader, view: IndexView, damaged: DamagedIndex) -> ServiceUnavailable:
    """Lets a damaged index be made anew, and returns what to answer meanwhile."""
    view.ask_for_repair(damaged.number, damaged.row.manifest)
    reader.work(should_stop=lambda: True)
    return ServiceUnavailable(
        f"The index of {damaged.row.field} is damaged and is made anew; ask again in a while.",
        view=INDEX_VIEW,
        field=damaged.row.field,
        retry_after=1,
    )


def _refuse_commits(behind: int) -> None:
    raise ServiceUnavailable(
        f'The view {INDEX_VIEW} is {behind} commits behind; ask again, or with "consistency": "eventual".',
        view=INDEX_VIEW,
        commits_behind=behind,
        retry_after=1,
    )


def _wait_for_parsers(
    reader: ViewReader, path: Path, may: Callable[[Path], bool] | None, wait_until: float
) -> None:
    """Waits until no changed file at or below a path, of those that count, waits to be read."""
    count = _waiting(reader, path, may)
    began = time.monotonic()
    while count:
        now = time.monotonic()
        if now >= wait_until:
            raise ServiceUnavailable(
                f"The view {INDEX_VIEW} has still to read {count} changed files below {format_path(path)}; "
                'ask again, or with "consistency": "eventual".',
                view=INDEX_VIEW,
                files_waiting=count,
                path=format_path(path),
                retry_after=1,
            )
        if now - began > _GRACE_SECONDS and _may_work():
            reader.work(should_stop=lambda: time.monotonic() >= wait_until)
        else:
            time.sleep(_POLL_SECONDS)
            pause()
        count = _waiting(reader, path, may)


def _wait_for_builds(reader: ViewReader, paths: Sequence[Path], wait_until: float) -> None:
    """Waits while files at paths are indexed for the first time, and that gets on."""
    began = moved = time.monotonic()
    seen: tuple[tuple[str, int], ...] = ()
    while (now := time.monotonic()) < wait_until:
        found = reader.read(lambda storage: first_builds(storage, paths), minimum=0)
        if found != seen:
            seen, moved = found, now
        if not found or now - moved > _STANDING_SECONDS:
            return
        if now - began > _GRACE_SECONDS and _may_work():
            reader.work(should_stop=lambda: time.monotonic() >= wait_until)
        else:
            time.sleep(_POLL_SECONDS)
            pause()


def _waiting(reader: ViewReader, path: Path, may: Callable[[Path], bool] | None) -> int:
    return reader.read(lambda storage: count_waiting(storage, path, may), minimum=0)


def _may_work() -> bool:
    """Whether this process may start child processes of its own: servers have another one that does."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is None or not monkey.is_module_patched("threading")


def finish_work(
    database: Database,
    should_stop: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> bool:
    """Brings the index up to HEAD and does all its work, here; for commands. Blocks for as long as it takes.

    Returns whether nothing is left; False when it was stopped.
    """
    reader = database.view(INDEX_VIEW)
    view = view_of(database)
    view.hurry(hurries=True)
    try:
        while not should_stop():
            reader.catch_up(should_stop=should_stop)
            if reader.work(should_stop=should_stop):
                done = reader.read(count_jobs, minimum=0)
                progress(*done)
                continue
            if not reader.read(is_busy, minimum=0):
                return True
            # Another process is at it.
            time.sleep(_POLL_SECONDS * 4)
        return False
    finally:
        view.hurry(hurries=False)
        view.release()


def rebuild(database: Database, path: Path) -> None:
    """Makes the index of everything at and below a path anew, in the background: every file is read again.

    Returns when that has begun; queries go on meanwhile.
    """
    reader = database.view(INDEX_VIEW)
    view_of(database).ask_for_rebuild(path)
    reader.work(should_stop=lambda: True)
