"""The state machine: each rule changes something in the database and in the model, or reads and compares."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from svc_events.api import Place, destination_states
from svc_events.sinks.records import read_sink_record
from svc_events.sinks.states import states_file
from svc_events.testing.sinks import running_sinks, wait_for

from events_model.model import LETTERS, Model, Reader, Told
from events_model.readers import Delivered, Receiver, Stream, receiving
from events_model.service import Service

__all__ = ["Deliveries"]

FILES = ("/a", "/b", "/d/x", "/d/y", "/d/e/z", "/d/e/hidden")
DIRECTORIES = ("/d", "/d/e", "/f", "/g")
PATHS = st.sampled_from((*FILES, *DIRECTORIES))
GRANTED = st.sampled_from(("/", "/", "/a", "/d", "/d/e", "/f", "/d/x"))
PATTERNS = st.sampled_from((None, None, None, "**", "*", "e/*", "**/z"))
FLAGS = st.sampled_from(("rl", "rl", "r", "l", LETTERS, "c", ""))
USERS = ("ann", "bob")
GROUPS = ("staff", "night")
PRINCIPALS = st.sampled_from((*USERS, *GROUPS))
RULES = (("/d/e/hidden", "--------"), ("/d/**", "-r--l---"), ("/a", "-r------"))
ENTRIES = frozenset({"entries_created", "entries_deleted"})
STREAMS = {
    "root": Reader(),
    "ann": Reader("ann"),
    "bob": Reader("bob"),
    "key of bob": Reader("bob", RULES),
    "names": Reader("ann", names=ENTRIES),
    "grants": Reader("bob", names=frozenset({"permissions_changed", "files_shared"})),
    "prefix": Reader(prefix="/d/"),
    "prefix of ann": Reader("ann", names=ENTRIES, prefix="/d/e"),
    "own": Reader("ann", own=True),
}
HOOKS = {
    "hook-root": Reader(),
    "hook-ann": Reader("ann"),
    "hook-bob": Reader("bob", names=ENTRIES),
    "hook-prefix": Reader("ann", prefix="/d/"),
}
UNORDERED = ("permissions_changed", "files_shared")
"""Of several in one commit: their order says nothing."""


class Deliveries(RuleBasedStateMachine):
    """One database with streams that stay open and webhooks, read now and then."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        directory = Path(tempfile.mkdtemp(prefix="svc-events-"))
        self._stack.callback(shutil.rmtree, directory)
        self.receiver: Receiver = self._stack.enter_context(receiving())
        self.service = Service(directory / "t.svcdb")
        self._stack.callback(self.service.close)
        ids = {name: self.service("POST", "/system/users", {"username": name})["user_id"] for name in USERS}
        self.model = Model(ids)
        self.tokens: dict[tuple[str | None, Any], str | None] = {(None, ()): None}
        for reader in STREAMS.values():
            if reader.user is not None and (reader.user, reader.rules) not in self.tokens:
                token = self.service.token_of(ids[reader.user], reader.rules)
                self.tokens[reader.user, reader.rules] = token
        self.place = self.end()
        for name, reader in HOOKS.items():
            self.add_webhook(name, reader)
        self.begun = dict.fromkeys(STREAMS, self.place)
        self.open: dict[str, Stream] = {}

    def teardown(self) -> None:
        try:
            for name in STREAMS:
                self.read(name)
            self.deliver(killed=False, refusals=0)
        finally:
            for stream in self.open.values():
                stream.close()
            self._stack.close()

    @initialize(group=st.sampled_from(GROUPS), path=GRANTED)
    def begin(self, group: str, path: str) -> None:
        self.make_group(group, set(USERS))
        self.grant(group, path, None, "rl", "")
        self.write("/d/x")

    def add_webhook(self, name: str, reader: Reader) -> None:
        body = {
            "id": name,
            "url": f"http://127.0.0.1:{self.receiver.port}/{name}",
            "events": sorted(reader.names or ()),
            "path_prefix": reader.prefix,
            "user_id": None if reader.user is None else self.model.ids[reader.user],
        }
        self.service("POST", "/system/webhooks", body)
        self.happened(*self.model.write(["/.config/webhooks.json"]))

    def end(self) -> str:
        return str(Place(self.service.database.head().sequence))

    # -- what happens ------------------------------------------------------------------------------

    def happened(self, *told: Told) -> None:
        """Root, who sees all, is told just this; the ids are noted."""
        stream = self.service.stream(None, "follow=false", self.place)
        found = stream.rest()
        stream.close()
        assert stream.status == 200
        assert in_order(found) == in_order([(self.place, one) for one in told])
        assert [at for at, _ in found] == sorted({at for at, _ in found})
        self.model.log += found
        self.place = self.end()

    def is_free(self, path: str) -> bool:
        """Whether a file or a directory may come to a path."""
        directories = {at for at, what in self.model.tree.items() if what[:1] != "f"}
        up = [at for at in self.model.tree if path.startswith(f"{at}/")]
        return path not in self.model.tree and all(at in directories for at in up)

    @rule(path=st.sampled_from(FILES))
    def write(self, path: str) -> None:
        if self.model.tree.get(path, "f")[:1] == "f":
            told = self.model.write([path])
            self.service("PUT", f"/files{path}", self.model.tree[path].encode())
            self.happened(*told)

    @rule(paths=st.lists(st.sampled_from(FILES), min_size=2, max_size=4, unique=True), pick=st.integers(0, 9))
    def write_many(self, paths: list[str], pick: int) -> None:
        """Files are stored and others deleted in one commit: one event with several entries of each kind."""
        there = [path for path in paths if path in self.model.tree][: pick % 3]
        new = [path for path in paths if path not in there]
        told = self.model.write(new, there)
        operations = [{"op": "delete", "path": path} for path in there]
        operations += [{"op": "put", "path": path, "content": self.model.tree[path]} for path in new]
        self.service("POST", "/files/batch", {"operations": operations})
        self.happened(*told)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        if path in self.model.tree:
            told = self.model.write([], [path])
            self.service("DELETE", f"/files{path}?recursive=true")
            self.happened(*told)

    @rule(path=st.sampled_from(DIRECTORIES))
    def mkdir(self, path: str) -> None:
        if self.is_free(path):
            told = self.model.mkdir(path)
            self.service("POST", "/files/mkdir", {"path": path})
            self.happened(*told)

    @rule(source=PATHS, destination=PATHS, copies=st.booleans())
    def rename(self, source: str, destination: str, copies: bool) -> None:
        """A file or a directory is moved, or copied."""
        are_alike = (source in FILES) == (destination in FILES)
        is_there = are_alike and source in self.model.tree and self.is_free(destination)
        if is_there and not destination.startswith(f"{source}/"):
            told = (self.model.copy if copies else self.model.move)(source, destination)
            operation = {"op": "copy" if copies else "move", "path": source, "to": destination}
            self.service("POST", "/files/batch", {"operations": [operation]})
            self.happened(*told)

    @rule(name=st.sampled_from(("s0", "s1")))
    def snapshot(self, name: str) -> None:
        if name not in self.model.snapshots:
            made = self.service("POST", "/versions/snapshots", {"name": name})
            # A version has one snapshot: this may be another's, which is older.
            if made["name"] == name:
                self.model.snapshots[name] = dict(self.model.tree)
                self.happened(Told("versions_created", (), ("snapshot", name)))

    @precondition(lambda self: self.model.snapshots)
    @rule(pick=st.integers(0, 9))
    def restore(self, pick: int) -> None:
        name = list(self.model.snapshots)[pick % len(self.model.snapshots)]
        before = dict(self.model.tree)
        told = self.model.restore(name)
        answer = self.service("POST", "/versions/restore", {"name": name})
        made = answer["auto_snapshot"]
        if made is not None and made not in self.model.snapshots:
            self.model.snapshots[made] = before
            told.append(Told("versions_created", (), ("snapshot", made)))
        self.happened(*told)

    # -- rights ------------------------------------------------------------------------------------

    def group_name(self, principal: str) -> str:
        return f"user:{self.model.ids[principal]}" if principal in USERS else principal

    @rule(principal=PRINCIPALS, path=GRANTED, pattern=PATTERNS, allow=FLAGS, deny=FLAGS)
    def grant(self, principal: str, path: str, pattern: str | None, allow: str, deny: str) -> None:
        if (principal in USERS or principal in self.model.groups) and (allow or deny):
            body = {"path": path, "group": self.group_name(principal), "path_pattern": pattern}
            self.service("POST", "/system/grants", {**body, "allow": flags(allow), "deny": flags(deny)})
            self.model.grant(principal, path, pattern, allow, deny)
            self.happened(Told("permissions_changed", (path,)))

    @precondition(lambda self: self.model.grants)
    @rule(pick=st.integers(0, 100))
    def revoke(self, pick: int) -> None:
        key = list(self.model.grants)[pick % len(self.model.grants)]
        group, path, pattern = key
        found = self.service("GET", f"/system/grants?{urlencode({'path': path})}")["grants"]
        (grant_id,) = [
            one["grant_id"]
            for one in found
            if (one["group"], one["path_pattern"]) == (self.group_name(group), pattern)
        ]
        self.service("DELETE", f"/system/grants/{grant_id}")
        del self.model.grants[key]
        self.happened(Told("permissions_changed", (path,)))

    @rule(users=st.sampled_from((("ann",), ("bob",), USERS)), path=PATHS, allow=st.sampled_from(("r", "c")))
    def share(self, users: tuple[str, ...], path: str, allow: str) -> None:
        if path in self.model.tree:
            body = {"paths": [path], "users": list(users), "permissions": flags(allow)}
            self.service("POST", "/files/share", body)
            for user in users:
                self.model.grant(user, path, None, allow, "")
            shared = [Told("files_shared", (path,), (self.model.ids[user],)) for user in users]
            self.happened(*shared, Told("permissions_changed", (path,)))

    @rule(name=st.sampled_from(GROUPS), members=st.sets(st.sampled_from(USERS)))
    def make_group(self, name: str, members: set[str]) -> None:
        body = {"members": [self.model.ids[user] for user in sorted(members)]}
        if name in self.model.groups:
            self.service("PATCH", f"/system/groups/{name}", body)
        else:
            self.service("POST", "/system/groups", {"name": name, **body})
        self.model.groups[name] = members
        self.happened()

    @rule(name=st.sampled_from(GROUPS))
    def delete_group(self, name: str) -> None:
        """Its grants go with it."""
        if name in self.model.groups:
            del self.model.groups[name]
            gone = [key for key in self.model.grants if key[0] == name]
            for key in gone:
                del self.model.grants[key]
            self.service("DELETE", f"/system/groups/{name}")
            self.happened(*(Told("permissions_changed", (path,)) for path in {path for _, path, _ in gone}))

    @rule(user=st.sampled_from(USERS))
    def change_activity(self, user: str) -> None:
        self.model.active ^= {user}
        self.service(
            "PATCH", f"/system/users/{self.model.ids[user]}", {"is_active": user in self.model.active}
        )
        self.happened()

    # -- who reads ---------------------------------------------------------------------------------

    def new_stream(self, name: str, last: str, **query: str) -> Stream:
        reader = STREAMS[name]
        if reader.names is not None:
            query["events"] = ",".join((*sorted(reader.names), "heartbeat"))
        if reader.prefix is not None:
            query["path_prefix"] = reader.prefix
        token = self.tokens[reader.user, reader.rules]
        return self.service.stream(token, urlencode(query), last, own=reader.own)

    @rule(name=st.sampled_from(sorted(STREAMS)))
    def read(self, name: str) -> None:
        """A stream that is open, or that is opened anew where it was, gives what has come since."""
        reader, begun = STREAMS[name], self.begun[name]
        if reader.own:
            self.replay(name, 0)
            return
        stream = self.open.pop(name, None) or self.new_stream(name, begun)
        found = stream.until(self.place) if stream.status == 200 else []
        if not self.model.may_listen(reader):
            assert found == []
            assert stream.is_over or stream.status == 401
            stream.close()
            return
        assert stream.status == 200
        if stream.is_over:
            # It ended while its user was not active.
            assert found == []
            stream.close()
            stream = self.new_stream(name, begun)
            found = stream.until(self.place)
        compare(name, found, self.model.shown(reader, begun))
        self.open[name], self.begun[name] = stream, self.place

    @rule(name=st.sampled_from(sorted(STREAMS)), pick=st.integers(0, 1000))
    def replay(self, name: str, pick: int) -> None:
        """A client that comes back behind any event gets all that followed, by the rights of now."""
        places = ["000000000000.000000", *(at for at, _ in self.model.log)]
        last = places[pick % len(places)]
        stream = self.new_stream(name, last, follow="false")
        if self.model.may_listen(STREAMS[name]):
            assert stream.status == 200
            compare(name, stream.rest(), self.model.shown(STREAMS[name], last))
        else:
            assert stream.status == 401
        stream.close()

    @rule(name=st.sampled_from(sorted(STREAMS)))
    def leave(self, name: str) -> None:
        if name in self.open:
            self.open.pop(name).close()

    @rule(killed=st.booleans(), refusals=st.integers(0, 3))
    def deliver(self, killed: bool, refusals: int) -> None:
        """The background process works until all is delivered, and ends or is killed."""
        database, self.receiver.refusals = self.service.database, refusals
        expected: dict[str, Delivered] = {}
        for name, reader in HOOKS.items():
            _, record = read_sink_record(database.system(), "webhooks", name)
            assert record is not None
            is_heard = self.model.may_listen(reader)
            expected[name] = self.model.shown(reader, record.place) if is_heard else []
        states_file(database.state_directory).remove()
        with running_sinks(database, killed=killed):
            wait_for(lambda: all(map(self.is_done, HOOKS)), "all is delivered")
        taken, self.receiver.taken = self.receiver.taken, {}
        for name in HOOKS:
            compare(name, taken.get(f"/{name}", []), expected[name])

    def is_done(self, name: str) -> bool:
        state = destination_states(self.service.database, "webhooks").get(name)
        if state is None:
            return False
        return state.place >= self.place or (state.error or "").startswith("held back")


def flags(letters: str) -> str:
    return "".join(letter if letter in letters else "-" for letter in LETTERS)


def compare(name: str, found: Delivered, expected: Delivered) -> None:
    """Each event came once, in order, with just what may be seen of it; and under the id that root knows."""
    assert [at for at, _ in found] == sorted({at for at, _ in found}), name
    missing, surplus = [[one for one in a if one not in b] for a, b in ((expected, found), (found, expected))]
    assert (missing, surplus) == ([], []), name


def in_order(delivered: Delivered) -> list[Told]:
    """What was delivered; events whose order says nothing are in that of their paths."""
    commits: dict[str, list[tuple[str, Told]]] = {}
    for at, told in delivered:
        commits.setdefault(at.partition(".")[0], []).append((at, told))
    return [told for commit in commits.values() for told in _sorted([told for _, told in commit])]


def _sorted(commit: list[Told]) -> list[Told]:
    unordered = {kind: iter(sorted(one for one in commit if one.kind == kind)) for kind in UNORDERED}
    return [next(unordered[one.kind]) if one.kind in unordered else one for one in commit]
