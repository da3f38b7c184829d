"""What the nodes' own logs say that was written where, and what must follow from it in the end.

The log of each node is read before anything may take it away: a collection, or an older copy of the file.
What the exchange committed is no write. It may share a commit with a client's write: of what was replaced
there, nothing is concluded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from svc_blackbox.client import Client

__all__ = ["Acknowledged", "Commit", "History", "State", "read_state"]

SYNC = "sync"
Content = tuple[str, str]
"""A path, and the hash of what stands there."""


@dataclass(frozen=True)
class Acknowledged:
    """A file that a node said to have stored."""

    node: str
    path: str
    hash: str


@dataclass
class State:
    """What a node shows: the root hash, files by path, and the hashes that lost at paths."""

    head: str
    files: dict[str, str]
    losers: dict[str, set[str | None]]
    snapshots: dict[str, str]


@dataclass
class Commit:
    """A commit with a client's write: paths, and the hashes of what stood there before and after."""

    sequence: int
    version: str
    is_mixed: bool
    changes: list[tuple[str, str | None, str | None]]


@dataclass
class History:
    """The writes of all nodes.

    Attributes:
        acknowledged: what nodes have said that they stored.
        loose: contents of which nothing is concluded: those that a resolution was about.
        has_returns: whether members were removed, put back or copied: what was deleted may come back then.
    """

    acknowledged: list[Acknowledged] = field(default_factory=list)
    loose: set[Content] = field(default_factory=set)
    has_returns: bool = False
    _logs: dict[str, dict[int, Commit]] = field(default_factory=lambda: defaultdict(dict))
    _lost: list[Commit] = field(default_factory=list)
    _lost_acknowledged: set[Acknowledged] = field(default_factory=set)
    _seen: Counter[str] = field(default_factory=Counter)

    def read(self, node: str, client: Client) -> int:
        """Reads what has come to the log of a node since it was read last; returns how far it goes."""
        rows: list[Any] = []
        after: dict[str, str] = {}
        last = self._seen[node]
        while True:
            page = _get(client, "/versions/log", limit=1000, **after)
            rows += [row for row in page["commits"] if row["sequence"] > last and row["ref"] == "HEAD"]
            if not page["has_more"] or any(row["sequence"] <= last for row in page["commits"]):
                break
            after = {"after": page["next_cursor"]}
        for row in rows:
            users = set(row.get("users") or [row["user"]])
            if users != {SYNC}:
                changes = _changes_of(client, row["sequence"])
                self.note(node, [Commit(row["sequence"], row["version"], SYNC in users, changes)])
            self._seen[node] = max(self._seen[node], row["sequence"])
        return self._seen[node]

    def note(self, node: str, commits: list[Commit]) -> None:
        """Takes commits of a node's log."""
        self._logs[node].update({one.sequence: one for one in commits})

    def copied(self, node: str, copy: str) -> None:
        """Says that a node began with the log of another, as far as that was read."""
        self._seen[copy] = self._seen[node]

    def lose(self, node: str, behind: int) -> None:
        """Says that the log of a node was put back: what is behind a number is gone, seen or not."""
        log = self._logs[node]
        gone = [log.pop(sequence) for sequence in [*log] if sequence > behind]
        self._lost += gone
        written = {(path, after) for commit in gone for path, _, after in commit.changes}
        self._lost_acknowledged |= {
            one for one in self.acknowledged if one.node == node and (one.path, one.hash) in written
        }
        self._seen[node] = behind

    def check(self, state: State) -> Counter[str]:
        """Compares what must be with what all nodes show; returns what was compared."""
        written: Counter[Content] = Counter()
        replaced: set[Content] = set()
        perhaps = set(self.loose)
        for commit in (one for log in self._logs.values() for one in log.values()):
            for path, before, after in commit.changes:
                if after is not None and after != before:
                    written[path, after] += 1
                if before is not None and after != before:
                    (perhaps if commit.is_mixed else replaced).add((path, before))
        for commit in self._lost:
            for path, before, after in commit.changes:
                # Others may have taken it over before it was gone here.
                perhaps |= {(path, one) for one in (before, after) if one is not None}
        self._check_acknowledged(written)
        return self._check_contents(state, written, replaced, perhaps)

    def _check_acknowledged(self, written: Counter[Content]) -> None:
        lost = {(one.path, one.hash) for one in self._lost_acknowledged}
        for one in self.acknowledged:
            where = (one.path, one.hash)
            assert where in written or where in lost, f"acknowledged, and in no log: {one}"

    def _check_contents(
        self, state: State, written: Counter[Content], replaced: set[Content], perhaps: set[Content]
    ) -> Counter[str]:
        count: Counter[str] = Counter()
        for (path, content), times in written.items():
            is_shown = state.files.get(path) == content
            if (path, content) in replaced:
                if times == 1 and not self.has_returns and (path, content) not in perhaps:
                    assert not is_shown, f"came back: {path} {content}"
                    count["replaced"] += 1
            elif (path, content) not in perhaps:
                assert is_shown or content in state.losers.get(path, ()), f"vanished: {path} {content}"
                count["kept"] += 1
        return count


def read_state(client: Client) -> State:
    """Reads what a node shows, in one version."""
    status = _get(client, "/sync/status")
    listing = _get(client, "/files/", depth=-1, limit=10_000, version=status["head"])
    losers: dict[str, set[str | None]] = defaultdict(set)
    for one in _get(client, "/sync/conflicts", limit=1000)["conflicts"]:
        losers[one["path"]].add(one["loser"]["hash"])
    return State(
        status["head"],
        {item["path"]: item["hash"] for item in listing["items"]},
        dict(losers),
        {one["name"]: one["root_hash"] for one in _get(client, "/version/snapshots")},
    )


def _changes_of(client: Client, sequence: int) -> list[tuple[str, str | None, str | None]]:
    found = []
    after: dict[str, str] = {}
    while True:
        page = _get(client, f"/versions/commits/{sequence}", limit=1000, **after)
        for row in page["changes"]:
            before, now = (_file_hash(row[side]) for side in ("before", "after"))
            found.append((row["path"], before, now))
        if not page["has_more"]:
            return found
        after = {"after": page["next_cursor"]}


def _file_hash(side: Any) -> str | None:
    return side["hash"] if side is not None and side["entry_type"] == 2 else None


def _get(client: Client, target: str, **query: object) -> Any:
    response = client.get(quote(target), **query)
    assert response.status == 200, (target, query, response.status, response.body[:500])
    return response.json()
