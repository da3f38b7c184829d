"""A pull: hello, then page after page of what this node does not know, until the last."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from svc.errors import Conflict, Forbidden, NotFound, PreconditionFailed, ServiceUnavailable
from svc.plugin import Database, Path, attempt
from svc_sync.clock import milliseconds_of
from svc_sync.cluster import Horizons, Member, learn, row_after_pull
from svc_sync.conflicts import is_settled
from svc_sync.exchange.answering import hello_of_node
from svc_sync.exchange.commits import Snapshot, log_holds, own_row, stamp
from svc_sync.exchange.contents import Fetcher
from svc_sync.exchange.documents import rule_of
from svc_sync.exchange.links import Link
from svc_sync.exchange.losers import Losers, clean_losers, losers_of
from svc_sync.exchange.marks import has_mark, name_of_place
from svc_sync.exchange.merging import Fetch, Told, commit_registers
from svc_sync.exchange.messages import (
    HelloAnswer,
    HelloMessage,
    ObjectsMessage,
    PageMessage,
    check_cluster,
    hello_of,
    read_page,
)
from svc_sync.exchange.records import ACTOR, now_ms, put_state
from svc_sync.exchange.store import put_registers
from svc_sync.exchange.trees import TreeCopier
from svc_sync.exchange.users import Write, forget_users, read_users
from svc_sync.hello import MAXIMUM_OFFSET_MS, Hello, Meeting, Verdict, judge
from svc_sync.pages import Page, is_current
from svc_sync.registers import Dot, Register, Row, Rule, join
from svc_sync.scopes import register_path_text
from svc_sync.tree import value_of

__all__ = ["HELLOS", "MeetingRefused", "Met", "greet", "prune", "pull", "tidy_all_losers", "tidy_losers"]

logger = logging.getLogger("svc.sync")

HELLOS = 5
"""A clock is measured so many times before anything is exchanged."""
PAGE_REGISTERS = 1_000
_MOST_ANEW = 3
_PRUNED = 1_000
_MOST_AGAIN = 100

_REASONS = {
    Verdict.OTHER_PROTOCOL: "The peer speaks another version of the exchange.",
    Verdict.OTHER_CLUSTER: "The peer belongs to another cluster.",
    Verdict.MY_OWN_WRITER: "The peer has this node's identity: one database is a copy of the other.",
    Verdict.CLOCKS_APART: f"The clocks are more than {MAXIMUM_OFFSET_MS // 1_000} seconds apart.",
    Verdict.I_AM_STALE: "This node lacks what the cluster counts on it to know (an older copy was put back, "
    "or it was removed): it has to join anew.",
    Verdict.THEY_ARE_STALE: "The peer lacks what the cluster counts on it to know: it has to join anew.",
}


class MeetingRefused(Conflict):
    """Nothing is exchanged with a node; the message says why.

    Attributes:
        is_stale: whether this node has to join anew.
        is_of_rows: whether what one of the two knows is less than the other counts on.
        is_copy: whether both have one identity.
        was_removed: whether somebody has removed this node: then it returns when somebody says so.
        was_put_back: whether the log lacks a commit that the other has seen of it.
        your_address: where this node is reached, as the other knows it.
        is_of_itself: whether this node has met itself: then there is no copy.
    """

    def __init__(
        self,
        verdict: Verdict,
        by_peer: bool = False,
        *,
        was_removed: bool = False,
        was_put_back: bool = False,
        your_address: str = "",
        is_of_itself: bool = False,
    ) -> None:
        text = "The address leads to this node itself." if is_of_itself else _REASONS[verdict]
        super().__init__(f"The peer refuses: {text}" if by_peer else text, verdict=verdict.value)
        self.is_stale = verdict is (Verdict.THEY_ARE_STALE if by_peer else Verdict.I_AM_STALE)
        self.is_of_rows = verdict in (Verdict.I_AM_STALE, Verdict.THEY_ARE_STALE)
        self.is_copy = verdict is Verdict.MY_OWN_WRITER and not is_of_itself
        self.was_removed = was_removed
        self.was_put_back = was_put_back
        self.your_address = your_address

    @property
    def stale(self) -> str | None:
        """Why this node has to join anew: ``removed``, ``put_back``, ``copy``; None: it need not."""
        if self.is_copy:
            return "copy"
        if not self.is_stale:
            return None
        return "removed" if self.was_removed else "put_back"

    @property
    def may_pass(self) -> bool:
        """Whether one of the two may only have said what it knew a moment before: it learns meanwhile."""
        return self.is_of_rows and not self.was_removed and not self.was_put_back


class Met(Struct, frozen=True):
    """What a meeting has shown: who the other is, and how far its clock is ahead."""

    answer: HelloAnswer
    offset_ms: float
    lag_ms: int


def greet(
    database: Database,
    link: Link,
    *,
    times: int = HELLOS,
    address: str = "",
    label: str = "",
    ends_copy: bool = False,
) -> Met:
    """Says hello, and judges the other by its answers.

    Args:
        database: of this node.
        link: to the other.
        times: how often the clock is measured.
        address: of this node, for the other to pull from; empty: it has none.
        label: of this node.
        ends_copy: whether this is the end of a first copy. Before it a node says nothing: to a member, its
            hello says that it has the copy.

    Raises:
        MeetingRefused: one of the two will not exchange anything.
        Conflict: this node has not got its first copy yet.
    """
    for _ in range(_MOST_ANEW):
        try:
            return _greet(database, link, times, address, label, ends_copy)
        except MeetingRefused as refused:
            if not refused.may_pass:
                raise
    return _greet(database, link, times, address, label, ends_copy)


def _greet(database: Database, link: Link, times: int, address: str, label: str, ends_copy: bool) -> Met:
    mine, answer, offset = _greet_once(database, link, address, label, ends_copy)
    offsets = [offset]
    for _ in range(times - 1):
        mine, answer, offset = _greet_once(database, link, address, label, ends_copy)
        offsets.append(offset)
    offset = statistics.median(offsets)
    verdict = judge(Meeting(mine, hello_of(answer), round(offset), partial(log_holds, database)))
    writer = mine.member.writer
    head = answer.cluster.heads.get(writer)
    what: dict[str, Any] = {
        "was_removed": writer in answer.cluster.removed | mine.cluster.removed,
        "was_put_back": head is not None and not log_holds(database, head),
        "your_address": answer.your_address,
        "is_of_itself": answer.place != "" and answer.place == name_of_place(database),
    }
    if verdict is not Verdict.ACCEPT:
        raise MeetingRefused(verdict, **what)
    if answer.verdict != Verdict.ACCEPT.value:
        found = next((one for one in _REASONS if one.value == answer.verdict), Verdict.OTHER_PROTOCOL)
        raise MeetingRefused(found, by_peer=True, **what)
    writer = answer.member.writer
    lag = milliseconds_of(answer.known.get(writer, 0)) - milliseconds_of(mine.known.get(writer, 0))
    return Met(answer, offset, max(0, lag))


def _greet_once(
    database: Database, link: Link, address: str, label: str, ends_copy: bool
) -> tuple[Hello, HelloAnswer, float]:
    snapshot = stamp(database)
    if snapshot.node.copying is not None and not ends_copy:
        raise Conflict("This node has not got its first copy yet.")
    mine = hello_of_node(snapshot)
    began = now_ms()
    answer = link.hello(
        HelloMessage(
            protocol=mine.protocol,
            cluster_id=mine.cluster_id,
            member=mine.member,
            known=dict(mine.known),
            cluster=mine.cluster,
            t1=began,
            address=address,
            label=label,
            is_marked=has_mark(database, mine.member.writer),
        )
    )
    ended = now_ms()
    check_cluster(answer.member, answer.known, answer.cluster, ended)
    return mine, answer, ((answer.t2 - began) + (answer.t3 - ended)) / 2


def pull(
    database: Database,
    link: Link,
    other: Member,
    *,
    is_stopping: Callable[[], bool] = lambda: False,
    from_nothing: bool = False,
    limit: int = PAGE_REGISTERS,
) -> int:
    """Takes over from a node that has accepted the hello what this one does not know; commits page by page.

    Args:
        database: of this node.
        link: to the other.
        other: the member that it is.
        is_stopping: whether to leave off between two pages; the next pull begins anew.
        from_nothing: asks for all registers, whatever this node's row says: the end of a first copy.
        limit: most registers of a page.

    Returns:
        How many registers have changed here.

    Raises:
        InvalidInput: the other has sent what no node sends. Nothing of that page was taken.
        Forbidden: one of the two is no member any more.
    """
    snapshot = stamp(database)
    node, known = snapshot.node, {} if from_nothing else dict(snapshot.state.known)
    first: Row | None = None
    after: str | None = None
    changed = again = 0
    while not is_stopping():
        asked = PageMessage(
            cluster_id=node.cluster_id, asker=node.writer, known=known, after=after, limit=limit
        )
        got = _ask_for_page(database, link, other, asked)
        first = got.page.known if first is None else first
        taken = _merge(database, got, other, first)
        if taken is None:
            again += 1
            if again > _MOST_AGAIN:
                raise ServiceUnavailable("The cluster learns faster than pages travel.", retry_after=1)
            continue
        changed += taken
        if got.page.last:
            break
        after = register_path_text(got.page.registers[-1][0])
    return changed


class _Got(Struct, frozen=True):
    """A page that has come, and what brings the contents and trees that it names."""

    page: Page
    fetch: Fetch
    trees: TreeCopier
    users: dict[Write, str]


def _ask_for_page(database: Database, link: Link, other: Member, asked: PageMessage) -> _Got:
    answer = link.registers(asked)
    message = ObjectsMessage(cluster_id=asked.cluster_id, asker=asked.asker)
    if answer.member.writer != other.writer:
        raise Forbidden("The peer has another identity by now.")
    fetch = Fetcher(database, link.objects, message, answer.contents)
    trees = TreeCopier(database, link, asked.cluster_id, asked.asker)
    return _Got(read_page(answer, now_ms()), fetch, trees, read_users(answer.users))


def prune(database: Database) -> int:
    """Forgets registers that all members know and that say what the tree says; returns how many."""
    # What was merged is written down as stamped before its registers go: else it would look like this node's
    # own writes once a collection has taken the commits that tell.
    snapshot = stamp(database, level=True)
    cluster = snapshot.state.cluster
    floor, scoped = cluster.floor(), cluster.scoped_floors()
    if (floor, scoped) == (snapshot.state.pruned, snapshot.state.pruned_scoped):
        return 0
    count = 0
    after: Path | None = None
    while True:
        gone, after = _settled(snapshot, after)
        state = snapshot.state
        if after is None:
            state = replace(state, pruned=floor, pruned_scoped=scoped)
        try:
            with database.transaction(actor=ACTOR, message="forget what all members know") as changes:
                put_registers(changes, snapshot.registers, dict.fromkeys(gone))
                forget_users(changes, database.system(), floor, _PRUNED)
                put_state(changes, own_row(database, snapshot.node, state), snapshot.entry)
        except (PreconditionFailed, NotFound):
            return count  # Somebody else has; the next pull prunes again.
        count += len(gone)
        if after is None:
            return count
        snapshot = stamp(database, level=True)


def _settled(snapshot: Snapshot, after: Path | None) -> tuple[list[Path], Path | None]:
    horizons = Horizons(snapshot.state.cluster)
    gone: list[Path] = []
    for path, register in snapshot.registers.items(after):
        rule = rule_of(path) or Rule.LAST_WRITER
        if is_settled(register, horizons.of(path), snapshot.shown(path), rule):
            gone.append(path)
            if len(gone) == _PRUNED:
                return gone, path
    return gone, None


def _merge(database: Database, got: _Got, other: Member, first: Row) -> int | None:
    """Merges a page; None: it is to be asked for again."""
    try:
        taken = attempt(lambda: _merge_once(database, got, other, first), "What is merged")
        got.trees.let_go()
        return taken
    except NotFound:
        # A content of the page is gone at the other node: by now it has a register that says so.
        return None


def _merge_once(database: Database, got: _Got, other: Member, first: Row) -> int | None:
    snapshot = stamp(database)
    page = got.page
    mine = snapshot.node.writer
    cluster = learn(snapshot.state.cluster, page.cluster)
    if mine in cluster.removed:
        raise Forbidden("This node was removed from the cluster: it has to join anew.")
    if other.writer not in cluster.members:
        raise Forbidden("The peer was removed from the cluster.")
    state = replace(snapshot.state, cluster=cluster)
    if not is_current(page, other.writer, cluster):
        commit_registers(database, snapshot, {}, state, got.fetch, got.trees)
        return None
    horizons = Horizons(cluster)
    scope, other_scope = cluster.scope_of(mine), cluster.scope_of(other.writer)
    changed: dict[Path, Register] = {}
    vt = state.vt
    for path, register in page.registers:
        if rule_of(path) is None:
            # A plugin that is not installed here has it.
            logger.info("%s is of no plugin of this node, and was left out", register_path_text(path))
            continue
        if not (scope.takes(path) and other_scope.takes(path)):
            continue
        present = snapshot.registers.get(path)
        joined = join(present, register, horizons.of(path))
        assert joined is not None
        vt = max(vt, *register.context.values(), 0)
        if joined != present:
            changed[path] = joined
    known = state.known
    if page.last:
        known = row_after_pull(known, scope, cluster.members[other.writer], other_scope, first)
    state = replace(state, vt=vt, known=known)
    affected = commit_registers(
        database,
        snapshot,
        changed,
        state,
        got.fetch,
        got.trees,
        told=Told(got.users, other.node_id),
    )
    tidy_losers(database, affected)
    return len(changed)


def tidy_all_losers(database: Database) -> None:
    """Removes what a crash has left among the contents that have lost."""
    paths = list(Losers(database).paths())
    for first in range(0, len(paths), PAGE_REGISTERS):
        tidy_losers(database, paths[first : first + PAGE_REGISTERS])


def tidy_losers(database: Database, paths: list[Path]) -> None:
    """Removes contents that have lost and that no register of some paths lists any more."""
    losers = Losers(database)
    paths = [path for path in paths if losers.names(path)]
    if not paths:
        return
    snapshot = stamp(database)
    wanted: dict[Path, list[Dot]] = {}
    for path in paths:
        register = snapshot.registers.get(path)
        shown = value_of(snapshot.tree.leaf(path))
        wanted[path] = [] if register is None else [dot for dot, _ in losers_of(register, shown)]
    clean_losers(database, wanted)
