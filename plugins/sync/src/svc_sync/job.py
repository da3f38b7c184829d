"""The job of the background process: one thread a peer pulls, tells the others what is new, and copies."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from svc.errors import ServiceUnavailable, SvcError
from svc.plugin import BackgroundJob, Database, Hash, JobContext
from svc_sync.api import TRANSPORTS, Connection
from svc_sync.configuration import SyncConfiguration
from svc_sync.entering import enter_by, is_copy_of_other, return_by, returns_by_itself
from svc_sync.exchange.bringing import bring_own
from svc_sync.exchange.commits import read_snapshot, stamp
from svc_sync.exchange.first_copy import continue_copy
from svc_sync.exchange.links import Link, connect
from svc_sync.exchange.losers import renew_layout
from svc_sync.exchange.marks import has_mark, write_mark
from svc_sync.exchange.membership import is_alone
from svc_sync.exchange.messages import PullMessage
from svc_sync.exchange.peers import status_of, woken_at, write_status
from svc_sync.exchange.pulling import HELLOS, MeetingRefused, greet, prune, pull, tidy_all_losers
from svc_sync.exchange.records import NodeRecord, find_node, now_ms, peers_of
from svc_sync.exchange.trees import forget_partial_trees
from svc_sync.introducing import Introductions
from svc_sync.models import PeerRecord

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SyncJob"]

TICK_S = 0.2
ALONE_TICK_S = 2.0
DEBOUNCE_S = 1.0
LONGEST_PAUSE_S = 60.0
MOST_AT_ONCE = 4
MOST_FAILING_AT_ONCE = 2
CLEAN_S = 3_600.0
_RUN_S = 30.0
_END_S = 3.0


class SyncJob(BackgroundJob):
    """Looks at short intervals what is due: a run lasts half a minute, and its threads go on in the next."""

    name = "exchange"
    interval_s = TICK_S
    stuck_after_s = 600.0

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._slots = _Slots()
        self._returning = threading.Lock()
        self._peers: dict[int, _PeerWork] = {}
        self._woken_ns = 0
        self._clean_at = 0.0
        self._introductions = Introductions()
        self._head: Hash | None = None
        self._changed_at: float | None = None

    def run(self, context: JobContext) -> None:
        """Lets what is due begin, and looks again; see ``BackgroundJob``."""
        settings: SyncConfiguration = context.configuration or SyncConfiguration()
        end = time.monotonic() + _RUN_S
        while not context.is_stopping and time.monotonic() < end:
            has_peers = self._step(context, settings)
            if context.wait(TICK_S if has_peers else ALONE_TICK_S):
                break
        if context.is_stopping:
            self._stop.set()
            for work in self._peers.values():
                work.join(_END_S)

    def _step(self, context: JobContext, settings: SyncConfiguration) -> bool:
        """Does what is due; returns whether this node has peers, or is about to."""
        database = context.database
        system = database.system()
        node = find_node(system)
        if settings.join and is_alone(database):
            self._enter(context, settings)
            return True
        if node is None:
            return False
        if node.copying is not None:
            self._copy(context, settings, node)
            return True
        if self._clean_at == 0.0:
            forget_partial_trees(database)
            renew_layout(database)
        self._introductions.begin_if_due(context, settings)
        # Of the same state: a node that joins meanwhile has peers before it has its first copy.
        peers = {peer.node_id: peer for peer in peers_of(system)}
        for node_id in self._peers.keys() - peers.keys():
            del self._peers[node_id]
        woken, self._woken_ns = self._woken_ns, woken_at(database)
        has_news = self._has_news(database)
        for node_id, peer in peers.items():
            work = self._peers.get(node_id)
            if work is None or work.peer != peer:
                work = self._peers[node_id] = _PeerWork(
                    peer, context, settings, self._stop, self._slots, self._returning
                )
            if self._woken_ns != woken:
                work.due_at = 0.0
            work.has_news |= has_news
            work.end_if_overdue()
            work.begin_if_due()
        if time.monotonic() >= self._clean_at:
            self._clean_at = time.monotonic() + CLEAN_S
            tidy_all_losers(database)
        return bool(peers)

    def _has_news(self, database: Database) -> bool:
        """Whether HEAD has changed, and a second has passed in which more could have."""
        root = database.head().root
        now = time.monotonic()
        if root != self._head:
            if self._changed_at is None:
                self._changed_at = now if self._head is not None else None
            self._head = root
        if self._changed_at is not None and now - self._changed_at >= DEBOUNCE_S:
            self._changed_at = None
            return True
        return False

    @staticmethod
    def _enter(context: JobContext, settings: SyncConfiguration) -> None:
        assert settings.join is not None
        enter_by(
            context.database,
            context.extensions(TRANSPORTS),
            settings.join,
            settings.join_token.reveal() or None,
            own_address=settings.cluster_address or "",
            label=settings.cluster_label,
            sync_paths=settings.sync_paths,
            brings=settings.join_merge,
        )
        context.logger.info("joined the cluster of %s", settings.join)

    @staticmethod
    def _copy(context: JobContext, settings: SyncConfiguration, node: NodeRecord) -> None:
        assert node.copying is not None
        connection = connect(node.copying.address, context.extensions(TRANSPORTS))
        try:
            if node.copying.brings:
                bring_own(context.database, Link(context.database, _UntilStop(connection, context)))
                is_complete = True
            else:
                is_complete = continue_copy(
                    context.database,
                    Link(context.database, connection),
                    address=settings.cluster_address or "",
                    label=settings.cluster_label,
                    is_stopping=lambda: context.is_stopping,
                )
        finally:
            connection.close()
        if is_complete:
            context.logger.info("the first copy is complete")


class _UntilStop(Connection):
    """A connection that asks nothing more when the process is to end."""

    def __init__(self, connection: Connection, context: JobContext) -> None:
        self._connection = connection
        self._context = context

    def post(self, path: str, payload: bytes, media_type: str, token: str | None) -> bytes:
        if self._context.is_stopping:
            raise ServiceUnavailable("The process ends: what was begun begins anew at the next start.")
        return self._connection.post(path, payload, media_type, token)


class _Slots:
    """How many peers are pulled from at a time; those that failed last can't take all places."""

    def __init__(self) -> None:
        self._all = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._failing = threading.BoundedSemaphore(MOST_FAILING_AT_ONCE)

    def take(self, is_failing: bool) -> bool:
        """Takes a place; False: there is none now."""
        if is_failing and not self._failing.acquire(blocking=False):
            return False
        if self._all.acquire(blocking=False):
            return True
        if is_failing:
            self._failing.release()
        return False

    def give_back(self, is_failing: bool) -> None:
        """Gives a place back."""
        self._all.release()
        if is_failing:
            self._failing.release()


class _PeerWork:
    """What one thread at a time does for one peer."""

    def __init__(
        self,
        peer: PeerRecord,
        context: JobContext,
        settings: SyncConfiguration,
        stop: threading.Event,
        slots: _Slots,
        returning: threading.Lock,
    ) -> None:
        self.peer = peer
        self.due_at = 0.0
        self.has_news = False
        self._database = context.database
        self._logger = context.logger
        self._transports: Callable[[], Any] = lambda: context.extensions(TRANSPORTS)
        self._settings = settings
        self._stop = stop
        self._slots = slots
        self._returning = returning
        self._thread: threading.Thread | None = None
        self._link: Link | None = None
        self._failures = 0
        self._status = replace(status_of(self._database, peer.node_id), state="Disconnected", is_over=True)
        write_status(self._database, peer.node_id, self._status)

    def join(self, seconds: float) -> None:
        """Waits for the end of what runs."""
        if self._thread is not None:
            self._thread.join(seconds)

    def begin_if_due(self) -> None:
        """Starts the thread if there is something to do, and none runs."""
        if self._thread is not None and self._thread.is_alive():
            return
        is_due = time.monotonic() >= self.due_at
        tells = self.has_news and self._failures == 0 and self._link is not None
        if not is_due and not tells:
            return
        is_failing = self._failures > 0
        if not self._slots.take(is_failing):
            return
        has_news, self.has_news = self.has_news, False
        self.due_at = float("inf")
        # The context belongs to the job's thread: what is needed of it is read here.
        transports = self._transports()
        self._thread = threading.Thread(
            target=self._run, args=(transports, is_due, has_news, is_failing), daemon=True, name="svc-sync"
        )
        self._thread.start()

    def end_if_overdue(self) -> None:
        """Ends an exchange that takes too long: others wait for its place."""
        if self._link is not None:
            self._link.abort_if_overdue()

    def _run(self, transports: Any, is_due: bool, has_news: bool, is_failing: bool) -> None:
        pause = self._settings.interval_seconds * random.uniform(0.8, 1.2)
        try:
            if is_due:
                self._try(transports)
            if has_news and self._link is not None:
                self._tell()
        except Exception as error:  # noqa: BLE001 - whatever a peer does must not end the exchange with it
            if self._stop.is_set():
                return
            pause = self._failed(error)
        finally:
            self._slots.give_back(is_failing)
        self.due_at = min(self.due_at, time.monotonic() + pause)

    def _try(self, transports: Any) -> None:
        began = now_ms()
        self._say(tried_at=began, is_over=False)
        times = 1
        if self._link is None:
            self._link = Link(self._database, connect(self.peer.address, transports))
            self._say(state="Honeymoon")
            times = HELLOS
        self._link.begin_exchange()
        settings = self._settings
        own, label = settings.cluster_address or "", settings.cluster_label
        try:
            met = greet(self._database, self._link, times=times, address=own, label=label)
            if not has_mark(self._database, read_snapshot(self._database).node.writer):
                self._take_mark(transports, self._link, met.answer.your_address)
                met = greet(self._database, self._link, times=1, address=own, label=label)
        except MeetingRefused as refused:
            self._return(transports, self._link, refused)
            met = greet(self._database, self._link, times=1, address=own, label=label)
        self._say(state="Active", clock_offset_ms=met.offset_ms, lag_ms=met.lag_ms)
        pulled = pull(self._database, self._link, met.answer.member, is_stopping=self._stop.is_set)
        prune(self._database)
        if self._stop.is_set():
            return
        self._failures = 0
        self._say(
            last_sync_at=now_ms(),
            pulled=pulled,
            last_error=None,
            failing_since=None,
            is_over=True,
            stale=None,
            stale_writer=None,
        )

    def _take_mark(self, transports: Any, link: Link, address: str) -> None:
        """Lets the database live here on; a copy of one that lives elsewhere becomes a node of its own."""
        own = self._settings.cluster_address or ""
        if is_copy_of_other(self._database, transports, address, own):
            self._join_anew(transports, link, "a copy of another node's database")
        else:
            write_mark(self._database, read_snapshot(self._database).node.writer)

    def _return(self, transports: Any, link: Link, refused: MeetingRefused) -> None:
        """Joins anew where nobody has to decide that: raises what was refused in all other cases."""
        if not returns_by_itself(self._database, refused):
            raise refused
        if not self._join_anew(transports, link, "a database that lacks what others have seen of it"):
            raise refused

    def _join_anew(self, transports: Any, link: Link, what: str) -> bool:
        """Joins anew; False: the thread of another peer is at it."""
        if not self._returning.acquire(blocking=False):
            return False
        try:
            self._logger.warning("this is %s: it joins the cluster anew by %s", what, self.peer.address)
            return_by(self._database, transports, link, self.peer.address, self._settings)
        finally:
            self._returning.release()
        return True

    def _tell(self) -> None:
        assert self._link is not None
        snapshot = stamp(self._database)
        self._link.pull(PullMessage(cluster_id=snapshot.node.cluster_id, asker=snapshot.node.writer))

    def _failed(self, error: Exception) -> float:
        """Takes note of a failure; returns for how many seconds the peer is left alone."""
        text = error.message if isinstance(error, SvcError) else f"{type(error).__name__}: {error}"
        if text != self._status.last_error:
            self._logger.warning("peer %s: %s", self.peer.address, text)
        self._failures += 1
        state = "Honeymoon" if _is_of_clocks(error) else "Disconnected"
        self._say(
            state=state,
            last_error=text[:1_000],
            failing_since=self._status.failing_since or now_ms(),
            pulled=0,
            is_over=True,
            **self._stale_after(error),
        )
        if self._link is not None:
            self._link.close()
        self._link = None
        longest = min(LONGEST_PAUSE_S, max(1.0, self._settings.interval_seconds))
        return min(longest, 2.0 ** min(self._failures, 10) / 2) * random.uniform(0.8, 1.2)

    def _stale_after(self, error: Exception) -> dict[str, Any]:
        """What holds of this node after a failure: what was said to it stays, whatever fails later."""
        node = find_node(self._database.system())
        writer = None if node is None else node.writer
        stale = error.stale if isinstance(error, MeetingRefused) else None
        if stale is None and self._status.stale_writer == writer:
            stale = self._status.stale
        return {"stale": stale, "stale_writer": None if stale is None else writer}

    def _say(self, **members: Any) -> None:
        sent, received = (0, 0) if self._link is None else self._link.take_counts()
        status = self._status
        members |= {"sent": status.sent + sent, "received": status.received + received}
        self._status = replace(status, **members)
        write_status(self._database, self.peer.node_id, self._status)


def _is_of_clocks(error: Exception) -> bool:
    """Whether a meeting failed because the clocks are apart."""
    return isinstance(error, SvcError) and error.details.get("verdict") == "clocks_apart"
