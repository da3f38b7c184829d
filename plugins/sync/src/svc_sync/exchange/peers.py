"""The nodes that this one pulls from: records in the database, and how it goes with them on this machine."""

from __future__ import annotations

import os
import time
from pathlib import Path as FilePath

import msgspec
from msgspec import Struct

from svc.errors import NotFound
from svc.plugin import Database, StateFile
from svc_sync.exchange.records import ACTOR, PEERS, peers_of
from svc_sync.models import PeerRecord

__all__ = [
    "PeerStatus",
    "began_ms",
    "find_peer",
    "heard_ms",
    "note_heard",
    "status_of",
    "take_peer",
    "wait_for_try",
    "wake",
    "woken_at",
    "write_status",
]

_LOOK_S = 0.05
_began: dict[int, int] = {}


class PeerStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How it goes with a peer.

    Attributes:
        is_over: whether the last try has ended.
        state: ``Disconnected``, ``Honeymoon`` or ``Active``.
        last_sync_at: when a pull was completed last, Unix milliseconds.
        tried_at: when the last try began.
        pulled: how many registers that try changed here.
        last_error: why the last try failed; None after one that did not.
        failing_since: when tries began to fail.
        clock_offset_ms: how far the peer's clock is ahead.
        lag_ms: how old the oldest write is, by its time, that the peer had at the last meeting and this
            node had not.
        stale: why this node has to join anew, as the peer says: ``removed``, ``put_back``, ``copy``.
        stale_writer: this node's writer when that was said; it holds for no other.
        sent: bytes of all questions that this node has asked it; the state directory counts.
        received: bytes of its answers.
    """

    is_over: bool = True
    state: str = "Disconnected"
    last_sync_at: int | None = None
    tried_at: int = 0
    pulled: int = 0
    last_error: str | None = None
    failing_since: int | None = None
    clock_offset_ms: float | None = None
    lag_ms: int = 0
    stale: str | None = None
    stale_writer: int | None = None
    sent: int = 0
    received: int = 0


def take_peer(database: Database, node_id: int, address: str, label: str = "") -> None:
    """Takes note of a node, or of its new address; commits where that is new."""
    peer = PeerRecord(node_id=node_id, address=address.rstrip("/"), label=label)
    if peer in peers_of(database.system()):
        return
    with database.transaction(actor=ACTOR, message="take note of a peer") as changes:
        changes.put_system((*PEERS, f"{node_id:016x}"), msgspec.json.encode(peer))


def find_peer(database: Database, node_id: int) -> PeerRecord:
    """Returns a peer.

    Raises:
        NotFound: there is none of this id.
    """
    for peer in peers_of(database.system()):
        if peer.node_id == node_id:
            return peer
    raise NotFound("There is no such peer.", node_id=node_id)


def status_of(database: Database, node_id: int) -> PeerStatus:
    """Returns how it goes with a peer, as this machine has seen it last."""
    found = _file(database, node_id).read()
    return PeerStatus() if found is None else found[0]


def write_status(database: Database, node_id: int, status: PeerStatus) -> None:
    """Says how it goes with a peer, for all processes of the database."""
    _file(database, node_id).beat(status)


def wait_for_try(database: Database, node_id: int, since_ms: int, seconds: float) -> PeerStatus | None:
    """Waits until the background process has tried a peer, and returns how that went; None: not in time.

    Args:
        database: of this node.
        node_id: of the peer.
        since_ms: a try counts that began then or later.
        seconds: how long to wait.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = status_of(database, node_id)
        if status.tried_at >= since_ms and status.is_over:
            return status
        time.sleep(_LOOK_S)
    return None


def note_heard(database: Database, node_id: int) -> None:
    """Notes that a member has said hello, for all processes of the database."""
    place = _directory(database)
    place.mkdir(mode=0o700, exist_ok=True)
    (place / _heard_name(node_id)).touch()


def heard_ms(database: Database, node_id: int) -> int:
    """Returns when a member has said hello last, Unix milliseconds; 0: never."""
    try:
        return (_directory(database) / _heard_name(node_id)).stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def began_ms() -> int:
    """Returns when this process asked for it first, Unix milliseconds."""
    return _began.setdefault(os.getpid(), time.time_ns() // 1_000_000)


def wake(database: Database) -> None:
    """Lets the background process pull from all peers at once: one of them has something new."""
    place = _directory(database)
    place.mkdir(mode=0o700, exist_ok=True)
    (place / "wake").touch()


def woken_at(database: Database) -> int:
    """Returns when ``wake`` was called last, in nanoseconds; 0: never."""
    try:
        return (_directory(database) / "wake").stat().st_mtime_ns
    except OSError:
        return 0


def _heard_name(node_id: int) -> str:
    return f"heard-{node_id:016x}"


def _directory(database: Database) -> FilePath:
    return database.state_directory / "sync"


def _file(database: Database, node_id: int) -> StateFile[PeerStatus]:
    return StateFile(_directory(database) / f"peer-{node_id:016x}.json", PeerStatus)
