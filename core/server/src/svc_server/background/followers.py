"""Keeps one view current, in a thread of its own: a view that fails or is slow keeps no other back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from svc.database import Database, ViewReader
from svc.findings import Finding
from svc.plugins.lifecycle import failing_view
from svc_cli.processes.state_file import ViewState
from svc_server.background.failures import describe_failure, trace_of, wait_after

__all__ = ["Feed", "Gathering", "ViewFollower"]

_BATCH = 512
_QUICK_S = 0.005
_SLOW_S = 0.05
_QUIET_AFTER = 200
_LEAST_GATHER_S = 0.05
_MOST_GATHER_S = 0.25
_MANY = 8
_WORK_S = 0.02
"""A view with work of its own has so long for it between commits, however many there are."""
_WORK_AGAIN_S = 1.0
"""One that had none is asked again so often: time has passed, or another process has left some."""
STUCK_SECONDS = 600.0
"""A view that has stood still for so long, with commits waiting, and has not failed either, is stuck."""
FAR_BEHIND = 100_000
"""Commits that a view may be behind, and nobody hears of it."""

logger = logging.getLogger("svc.background")


class Feed:
    """Looks at HEAD for all followers at once, and wakes them when it moves."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._moved = threading.Condition()
        self._sequence = database.head().sequence
        self._quiet = 0

    @property
    def sequence(self) -> int:
        """Number of the last commit that was seen."""
        return self._sequence

    def look(self) -> float:
        """Looks at HEAD once, and returns the seconds after which to look again."""
        sequence = self._database.head().sequence
        if sequence == self._sequence:
            self._quiet += 1
            return _QUICK_S if self._quiet < _QUIET_AFTER else _SLOW_S
        self._quiet = 0
        with self._moved:
            self._sequence = sequence
            self._moved.notify_all()
        return _QUICK_S

    def wait_past(self, sequence: int, is_over: Callable[[], bool], timeout: float | None = None) -> None:
        """Waits until a commit behind ``sequence`` is there, or a ``wake`` after which ``is_over`` holds.

        ``timeout`` is in seconds; None waits without end.
        """
        with self._moved:
            self._moved.wait_for(lambda: self._sequence > sequence or is_over(), timeout)

    def wake(self) -> None:
        """Wakes all who wait."""
        with self._moved:
            self._moved.notify_all()


class Gathering:
    """How long a view that has caught up leaves commits alone, so that it takes in several at once.

    Half of what a small commit costs is the transaction of the view and nodes that the next one changes
    again. Who reads brings the view up to date first: the less it is behind, the sooner.
    """

    def __init__(self) -> None:
        self._seconds = _LEAST_GATHER_S

    def pause(self, taken: int, *, is_read: bool) -> float:
        """Returns the seconds to leave commits alone, twice as long each time while many come.

        ``is_read``: somebody has read the view since the last time, and brought it on for that.
        """
        longer = taken >= _MANY and not is_read
        self._seconds = min(2 * self._seconds, _MOST_GATHER_S) if longer else _LEAST_GATHER_S
        return self._seconds


class ViewFollower:
    """The thread of one view."""

    def __init__(
        self, name: str, plugin_id: str, reader: ViewReader, feed: Feed, on_error: Callable[[str], None]
    ) -> None:
        self._reader = reader
        self._feed = feed
        self._on_error = on_error
        self._stopping = threading.Event()
        self._seen_at = (-1, time.monotonic())
        self._work_fails = False
        self._work_after = 0.0
        self._gathering = Gathering()
        self.state = ViewState(name, plugin_id, 0)
        self.thread = threading.Thread(target=self._run, name=f"svc-view-{name}", daemon=True)

    def start(self) -> None:
        """Begins to follow."""
        self.thread.start()

    def stop(self) -> None:
        """Tells the thread to end; it does after the transaction that it is at, a fifth of a second at most.

        A view whose one step takes longer ends when that is done.
        """
        self._stopping.set()
        self._feed.wake()

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the view: it fails, or it has not got on for long although there are commits."""
        state, now = self.state, time.monotonic()
        if state.applied != self._seen_at[0] or self._feed.sequence <= state.applied:
            self._seen_at = (state.applied, now)
        if state.error is not None:
            behind = max(0, self._feed.sequence - state.applied)
            yield failing_view(
                state.plugin, state.name, f"{state.error}, {behind} commits behind.", state.failing_since_ms
            )
        elif now - self._seen_at[1] > STUCK_SECONDS:
            yield Finding(
                "view.stuck",
                state.plugin,
                f"A view of the plugin {state.plugin!r} does not get on.",
                "A large commit may take its time. If it does not end, start the server anew.",
                subject=state.name,
                detail=f"{state.name} stands at commit {state.applied}.",
            )
        elif self._feed.sequence - state.applied > FAR_BEHIND:
            yield Finding(
                "view.behind",
                state.plugin,
                f"A view of the plugin {state.plugin!r} is far behind.",
                "It catches up by itself; until then, what reads it waits or says that it is behind.",
                subject=state.name,
                detail=f"{state.name} stands at commit {state.applied} of {self._feed.sequence}.",
            )

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 - one view may fail, all others go on
                self._note_failure(error)
                self._stopping.wait(wait_after(self.state.failures))

    def _follow(self) -> None:
        reader = self._reader
        applied = reader.applied
        self._note_progress(applied)
        more_work = reader.has_work
        while not self._stopping.is_set():
            if self._feed.sequence <= applied:
                if more_work:
                    more_work = self._work(applied, _WORK_S)
                    self._note_progress(applied)
                else:
                    again = _WORK_AGAIN_S if reader.has_work else None
                    self._feed.wait_past(applied, self._stopping.is_set, again)
                    more_work = reader.has_work
                continue
            before = reader.applied
            is_read, target = before > applied, min(self._feed.sequence, applied + _BATCH)
            applied = reader.catch_up(target, should_stop=self._stopping.is_set)
            self._note_progress(applied)
            # Commits that come one by one are taken in together; whoever reads before catches up.
            gathers = applied - before < _BATCH
            pause = self._gathering.pause(applied - before, is_read=is_read) if gathers else _WORK_S
            if reader.has_work:  # also behind a collection, for a view that has no work of its own
                more_work = self._work(applied, pause)
                self._note_progress(applied)
            if gathers and not more_work:
                self._stopping.wait(pause)

    def _work(self, applied: int, seconds: float) -> bool:
        """Lets the view work until a commit comes, and for so long at least; returns whether more is left.

        Work that fails is tried again later, and commits are applied meanwhile.
        """
        now = time.monotonic()
        if now < self._work_after:
            return False
        enough = now + seconds

        def should_stop() -> bool:
            return self._stopping.is_set() or (time.monotonic() >= enough and self._feed.sequence > applied)

        more = True
        try:
            while more and not should_stop():
                more = self._reader.work(should_stop=should_stop)
        except Exception as error:  # noqa: BLE001
            self._work_fails = True
            self._note_failure(error)
            self._work_after = time.monotonic() + wait_after(self.state.failures)
            return False
        self._work_fails = False
        return more

    def _note_progress(self, applied: int) -> None:
        state = self.state
        if state.failures and (
            self._work_fails or (applied <= state.applied and self._feed.sequence > applied)
        ):
            # It was read, and has not got on yet.
            self.state = msgspec.structs.replace(state, applied=max(applied, state.applied))
            return
        if state.failures:
            logger.info("The view %s works again.", state.name)
        self.state = ViewState(state.name, state.plugin, applied)

    def _note_failure(self, error: Exception) -> None:
        state = self.state
        text = describe_failure(error)
        if text != state.error:
            logger.error("The view %s fails: %s", state.name, text, exc_info=trace_of(error))
        self.state = msgspec.structs.replace(
            state,
            failures=state.failures + 1,
            error=text,
            failing_since_ms=state.failing_since_ms or time.time_ns() // 1_000_000,
        )
        self._on_error(f"view {state.name}: {text}")
