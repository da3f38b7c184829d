"""The state machine: each rule asks the database and the model for the same, and compares."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from versions_model.model import (
    Entry,
    Fork,
    Model,
    Snapshot,
    Tree,
    below,
    change_type,
    changes,
    has_file_above,
    history_of,
    in_the_way,
    is_mixed,
    kind_of,
    merge,
    move,
    restore,
    snapshot_history,
    without,
)
from versions_model.places import Answer, Place

__all__ = ["Versions"]

T = TypeVar("T")
FILES = ("/a", "/b", "/d/x", "/d/y", "/e/z")
DIRECTORIES = ("/d", "/e")
EITHER = "/d"
"""A path that is a file in some states and a directory in others."""
NEW_DIRECTORY = "/f"
PATHS = st.sampled_from((*FILES, EITHER))
FILE_PATHS = st.sampled_from(FILES)
TREE_PATHS = st.sampled_from((*FILES, *DIRECTORIES, f"{NEW_DIRECTORY}/x"))
SNAPSHOT_NAMES = st.sampled_from(("s0", "s1", "s2", "s3", "s4"))
FORK_NAMES = st.sampled_from(("f0", "f1", "f2"))
PICK = st.integers(0, 10_000)
SIZES = st.sampled_from((0, 1, 40, 5_000, 150_000))
MOSTLY = st.sampled_from((True, True, True, True, False))
STRATEGIES = st.sampled_from(("fail", "fail", "ours", "theirs"))


class Edit(NamedTuple):
    """A file to store."""

    path: str
    number: int
    size: int
    stamp: int


EDITS = st.lists(st.builds(Edit, PATHS, st.integers(0, 3), SIZES, st.integers(1, 4)), min_size=1, max_size=4)


def content(number: int, size: int) -> bytes:
    """One of a few contents, so that equal ones come up often."""
    return (b"%d is what it holds. " % number * (size // 8 + 1))[:size]


class Versions(RuleBasedStateMachine):
    """One database with a history, and a second one that gets backups of it."""

    open_here: Callable[[Path], Place]
    open_there: Callable[[Path], Place]

    def __init__(self) -> None:
        super().__init__()
        self._directory = Path(tempfile.mkdtemp(prefix="svc-model-"))
        self.here: Place = type(self).open_here(self._directory / "here.svcdb")
        self.there: Place = type(self).open_there(self._directory / "there.svcdb")
        self.model = Model("")
        self.copy = Model("")

    def teardown(self) -> None:
        for place in (self.here, self.there):
            place.close()
        shutil.rmtree(self._directory)

    @initialize(edits=EDITS, forked=EDITS)
    def begin(self, edits: list[Edit], forked: list[Edit]) -> None:
        self.model = Model(self.head(self.here))
        self.copy = Model(self.head(self.there))
        self.write_all("HEAD", edits)
        self.create_snapshot("s0", {})
        self.create_fork("f0", 0, False)
        self.write_all("f0", forked)

    # -- asking ----------------------------------------------------------------------------------

    def ask(
        self, method: str, path: str, value: Any = None, *, place: Place | None = None, **query: object
    ) -> Answer:
        """Sends a request, its body as JSON unless it is bytes; no answer may be a server error."""
        headers: dict[str, str] = {}
        body = value
        if isinstance(value, bytes):
            headers["Content-Type"] = "application/octet-stream"
        elif value is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(value).encode()
        answer = (place or self.here).request(method, path, body, headers, query)
        assert answer.status < 500, (method, path, query, answer.body)
        return answer

    def expect(self, status: int, method: str, path: str, value: Any = None, **query: Any) -> Any:
        """Sends a request that must be answered with a status; returns its JSON."""
        answer = self.ask(method, path, value, **query)
        assert answer.status == status, (method, path, value, query, answer.status, answer.body[:1000])
        return answer.json()

    def head(self, place: Place, **query: object) -> str:
        """A root hash as the database tells it."""
        answer = self.ask("GET", "/files/", place=place, limit=1, **query)
        assert answer.status == 200, (query, answer.body)
        return answer.headers["x-svc-version"]

    def check_tree(self, expected: Tree, place: Place | None = None, **query: object) -> None:
        """The database lists exactly these files, with their contents' hashes and times."""
        answer = self.ask("GET", "/files/", place=place, depth=-1, limit=10_000, **query)
        assert answer.status == 200, (query, answer.body)
        assert answer.json()["has_more"] is False
        found = {
            item["path"]: (item["hash"], item["size"], item["updated_at"]) for item in answer.json()["items"]
        }
        wanted = {path: (entry.hash, len(entry.content), entry.stamp) for path, entry in expected.items()}
        assert found == wanted, (query, found, wanted)

    def at(self, place: str) -> dict[str, str]:
        """The query that names HEAD or a fork."""
        return {} if place == "HEAD" else {"fork": place}

    def place(self, pick: int) -> str:
        """HEAD, or one of the forks; HEAD half of the time."""
        names = list(self.model.forks)
        return "HEAD" if not names or pick % 2 == 0 else names[pick // 2 % len(names)]

    @staticmethod
    def pick(pick: int, among: Sequence[T]) -> T:
        """One of several."""
        return among[pick % len(among)]

    def moved(self, place: str, tree: Tree, answer: Any) -> None:
        """HEAD or a fork has another tree now; the answer and a reader agree on its version."""
        root = self.head(self.here, **self.at(place))
        assert answer.get("version", root) == root
        self.model.set_place(place, root, tree)

    # -- files -----------------------------------------------------------------------------------

    def write_all(self, place: str, edits: list[Edit]) -> None:
        """Stores files one by one, each with a time of its own."""
        for edit in edits:
            tree = self.model.tree_of(place)
            entry = Entry(content(edit.number, edit.size), edit.stamp)
            headers = {
                "Content-Type": "text/plain",
                "X-Svc-Created-At": str(edit.stamp),
                "X-Svc-Updated-At": str(edit.stamp),
            }
            answer = self.here.request("PUT", f"/files{edit.path}", entry.content, headers, self.at(place))
            if in_the_way(tree, edit.path):
                assert answer.status == 409, answer.body
            elif answer.status != 409 or not self.may_be_empty(tree, edit.path):
                assert answer.status == (200 if edit.path in tree else 201), answer.body
                self.moved(place, {**tree, edit.path: entry}, json.loads(answer.body))

    @staticmethod
    def may_be_empty(tree: Tree, path: str) -> bool:
        """Whether an empty directory may stand at a path: the model knows files only."""
        return path in (*DIRECTORIES, NEW_DIRECTORY) and kind_of(tree, path) is None

    @rule(edits=EDITS)
    def write_to_head(self, edits: list[Edit]) -> None:
        self.write_all("HEAD", edits)

    @rule(pick=PICK, edits=EDITS)
    def write_to_a_fork(self, pick: int, edits: list[Edit]) -> None:
        self.write_all(self.pick(pick, ["HEAD", *self.model.forks][-3:]), edits)

    @rule(pick=PICK, path=TREE_PATHS)
    def delete(self, pick: int, path: str) -> None:
        place = self.place(pick)
        tree = self.model.tree_of(place)
        answer = self.ask("DELETE", f"/files{path}", recursive="true", **self.at(place))
        there = any(below(name, path) for name in tree)
        # A directory that was emptied stays, and the model knows files only.
        assert answer.status == 200 if there else answer.status in (200, 404), answer.body
        if answer.status == 200:
            self.moved(place, without(tree, path), answer.json())

    @rule(pick=PICK, source=PATHS, destination=PATHS, overwrite=st.booleans())
    def move_file(self, pick: int, source: str, destination: str, overwrite: bool) -> None:
        place = self.place(pick)
        body = {"to": destination, "overwrite": overwrite}
        self.move(place, source, destination, body, overwrite=overwrite)

    def move(
        self, place: str, source: str, destination: str, body: dict[str, Any], *, overwrite: bool
    ) -> None:
        """Moves a file or directory, if the state allows it."""
        tree = self.model.tree_of(place)
        answer = self.ask("PATCH", f"/files{source}", body, **self.at(place))
        uncertain = self.may_be_empty(tree, source) or self.may_be_empty(tree, destination)
        if kind_of(tree, source) is None and not uncertain:
            assert answer.status == 404, answer.body
        elif source == destination or uncertain:
            assert answer.status in (200, 404, 409), answer.body
        elif (
            (destination in tree and not overwrite)
            or in_the_way(tree, destination)
            or below(destination, source)
        ):
            # A file at the source that lies above the destination is no parent of it.
            assert answer.status == 409, answer.body
        else:
            assert answer.status == 200, answer.body
        if answer.status == 200:
            self.moved(place, move(tree, source, destination), answer.json())

    @rule(pick=PICK, source=st.sampled_from(DIRECTORIES), back=st.booleans())
    def move_directory(self, pick: int, source: str, back: bool) -> None:
        place = self.place(pick)
        source, destination = (NEW_DIRECTORY, source) if back else (source, NEW_DIRECTORY)
        self.move(place, source, destination, {"to": destination}, overwrite=False)

    # -- snapshots -------------------------------------------------------------------------------

    @rule(name=SNAPSHOT_NAMES, metadata=st.sampled_from(({}, {"k": "v"}, {"n": [1, None]})))
    def create_snapshot(self, name: str, metadata: dict[str, object]) -> None:
        model = self.model
        equal = [known for known, snapshot in model.snapshots.items() if snapshot.root == model.head]
        answer = self.ask("POST", "/versions/snapshots", {"name": name, "metadata": metadata})
        if name in model.snapshots:
            assert (answer.status, answer.json()["code"]) == (409, "ALREADY_EXISTS")
        elif equal:
            assert answer.status == 200, answer.body
            assert answer.json()["name"] in equal
        else:
            assert answer.status == 201, answer.body
            assert (answer.json()["root_hash"], answer.json()["metadata"]) == (model.head, metadata)
            model.snapshots[name] = Snapshot(model.head, "manual", metadata)

    @rule(pick=PICK, known=MOSTLY, new=SNAPSHOT_NAMES)
    def rename_snapshot(self, pick: int, known: bool, new: str) -> None:
        names = list(self.model.snapshots)
        old = self.pick(pick, names) if names and known else "no-such"
        answer = self.ask("PATCH", f"/versions/snapshots/{old}", {"name": new})
        if old not in self.model.snapshots:
            assert answer.status == 404, answer.body
        elif old == new:
            assert answer.status in (200, 409), answer.body
        elif new in self.model.snapshots:
            assert (answer.status, answer.json()["code"]) == (409, "ALREADY_EXISTS")
        elif self.model.snapshots[old].kind == "automatic" and answer.status == 400:
            return
        else:
            assert answer.status == 200, answer.body
            renamed = {new if name == old else name: item for name, item in self.model.snapshots.items()}
            # One that was made by itself may become somebody's own by its name.
            if renamed[new].kind == "automatic":
                renamed[new].kind = answer.json()["kind"]
            self.model.snapshots = renamed

    @rule(pick=PICK, known=MOSTLY)
    def delete_snapshot(self, pick: int, known: bool) -> None:
        names = list(self.model.snapshots)
        name = self.pick(pick, names) if names and known else "no-such"
        status = 200 if name in self.model.snapshots else 404
        value = self.expect(status, "DELETE", f"/version/snapshot/{name}")
        if status == 200:
            assert value.items() >= {"deleted": True, "name": name}.items()
            del self.model.snapshots[name]

    def note_safety_snapshot(self, answer: Any) -> None:
        """A restore named the automatic snapshot that it made of HEAD before."""
        name = answer["auto_snapshot"]
        assert name.startswith("pre-restore-")
        assert name not in self.model.snapshots
        found = self.expect(200, "GET", "/version/snapshots")
        (metadata,) = [item["metadata"] for item in found if item["name"] == name]
        self.model.snapshots[name] = Snapshot(self.model.head, "automatic", metadata)

    @rule(pick=PICK, known=MOSTLY)
    def restore_snapshot(self, pick: int, known: bool) -> None:
        names = list(self.model.snapshots)
        name = self.pick(pick, names) if names and known else "no-such"
        answer = self.ask("POST", "/version/restore", {"name": name})
        if name not in self.model.snapshots:
            assert answer.status == 404, answer.body
            return
        assert answer.status == 200, answer.body
        root = self.model.snapshots[name].root
        if root == self.model.head:
            assert answer.json().get("auto_snapshot") is None
        else:
            self.note_safety_snapshot(answer.json())
        self.moved("HEAD", self.model.trees[root], answer.json())
        assert self.model.head == root

    @rule(pick=PICK, path=TREE_PATHS, by_name=st.booleans())
    def restore_path(self, pick: int, path: str, by_name: bool) -> None:
        names = list(self.model.snapshots)
        if by_name and names:
            name = self.pick(pick, names)
            root, body = self.model.snapshots[name].root, {"snapshot": name, "version": "0" * 64}
        else:
            root = self.pick(pick, list(self.model.trees))
            body = {"version": root}
        answer = self.ask("POST", f"/version/file-restore{path}", body)
        before, source = self.model.tree_of("HEAD"), self.model.trees[root]
        wanted, found = kind_of(source, path), kind_of(before, path)
        if self.may_be_empty(source, path) or (wanted == "file" and self.may_be_empty(before, path)):
            assert answer.status in (200, 404, 409), answer.body
        elif wanted is None:
            assert answer.status == 404, answer.body
        elif (found is not None and found != wanted) or has_file_above(before, path):
            assert answer.status == 409, answer.body
        else:
            assert answer.status == 200, answer.body
        if answer.status == 200:
            self.note_safety_snapshot(answer.json())
            self.moved("HEAD", restore(before, source, path), answer.json())

    # -- forks -----------------------------------------------------------------------------------

    @rule(name=FORK_NAMES, pick=PICK, from_snapshot=st.booleans())
    def create_fork(self, name: str, pick: int, from_snapshot: bool) -> None:
        names = list(self.model.snapshots)
        body, root = {"name": name}, self.model.head
        if from_snapshot and names:
            body["base"] = self.pick(pick, names)
            root = self.model.snapshots[body["base"]].root
        answer = self.ask("POST", "/versions/forks", body)
        if name in self.model.forks:
            assert (answer.status, answer.json()["code"]) == (409, "ALREADY_EXISTS")
        else:
            assert answer.status == 201, answer.body
            self.model.forks[name] = Fork(root, root)

    @precondition(lambda self: self.model.forks)
    @rule(pick=PICK, force=st.booleans())
    def promote_fork(self, pick: int, force: bool) -> None:
        name = self.pick(pick, list(self.model.forks))
        fork = self.model.forks[name]
        query = {"force": "true"} if force else {}
        answer = self.ask("POST", f"/version/fork/{name}/promote", {}, **query)
        if self.model.head != fork.base and not force and self.model.head != fork.root:
            assert (answer.status, answer.json()["code"]) == (409, "CONFLICT")
            return
        if self.model.head == fork.root != fork.base and answer.status == 409:
            # Nothing is lost either way: HEAD is what the fork would make of it.
            return
        assert answer.status == 200, answer.body
        self.moved("HEAD", self.model.trees[fork.root], answer.json())
        assert self.model.head == fork.root
        fork.base = fork.root

    @precondition(lambda self: self.model.forks)
    @rule(pick=PICK)
    def abandon_fork(self, pick: int) -> None:
        name = self.pick(pick, list(self.model.forks))
        value = self.expect(200, "DELETE", f"/versions/forks/{name}")
        assert value.items() >= {"abandoned": True, "name": name}.items()
        del self.model.forks[name]

    @precondition(lambda self: self.model.forks)
    @rule(pick=PICK, strategy=STRATEGIES, into_head=st.booleans())
    def merge_fork(self, pick: int, strategy: Literal["fail", "ours", "theirs"], into_head: bool) -> None:
        name = self.pick(pick, list(self.model.forks))
        fork = self.model.forks[name]
        source, into = (name, "HEAD") if into_head else ("HEAD", name)
        base, theirs = self.model.trees[fork.base], self.model.root_of(source)
        merged, conflicts = merge(base, self.model.tree_of(into), self.model.trees[theirs], strategy)
        answer = self.ask("POST", "/versions/merge", {"from": source, "into": into, "strategy": strategy})
        value = answer.json()
        if is_mixed(base, self.model.tree_of(into), self.model.trees[theirs]):
            self.merged_somehow(into, theirs, strategy, answer)
            if answer.status == 200:
                fork.base = theirs
            return
        if conflicts and strategy == "fail":
            assert (answer.status, value["code"]) == (409, "CONFLICT"), answer.body
            found = {
                (
                    item["path"],
                    item["kind"],
                    *(item[side] and item[side]["hash"] for side in ("base", "ours", "theirs")),
                )
                for item in value["conflicts"]
            }
            wanted = {
                (item.path, item.kind, *(entry and entry.hash for entry in item[2:])) for item in conflicts
            }
            assert found == wanted
            return
        assert answer.status == 200, (answer.body, conflicts)
        before = self.model.tree_of(into)
        difference = [change_type(*sides) for sides in changes(before, merged).values()]
        assert value["changes"]["added"] == difference.count("added"), (value, difference)
        assert value["changes"]["deleted"] == difference.count("deleted"), (value, difference)
        self.moved(into, merged, value)
        fork.base = theirs

    def merged_somehow(self, into: str, theirs: str, strategy: str, answer: Answer) -> None:
        """Where files meet directories: whole or not at all, and nothing that neither side had."""
        if answer.status == 409:
            assert strategy == "fail"
            assert answer.json()["conflicts"]
            return
        assert answer.status == 200, answer.body
        sides = (self.model.tree_of(into), self.model.trees[theirs])
        items = self.ask("GET", "/files/", depth=-1, limit=10_000, **self.at(into)).json()["items"]
        merged = {}
        for item in items:
            entries = [side[item["path"]] for side in sides if item["path"] in side]
            merged[item["path"]] = next(
                entry for entry in entries if (entry.hash, entry.stamp) == (item["hash"], item["updated_at"])
            )
        self.moved(into, merged, answer.json())

    # -- reading ---------------------------------------------------------------------------------

    @rule(pick=PICK, path=PATHS)
    def read_a_version(self, pick: int, path: str) -> None:
        root = self.pick(pick, list(self.model.trees))
        tree = self.model.trees[root]
        self.check_tree(tree, version=root)
        answer = self.ask("GET", f"/engine{path}", version=root, fork="no-such")
        if path in tree:
            assert (answer.status, answer.body) == (200, tree[path].content)
        elif kind_of(tree, path) is None and not self.may_be_empty(tree, path):
            assert answer.status == 404, answer.body

    @rule(pick=PICK)
    def read_names(self, pick: int) -> None:
        for name, snapshot in self.model.snapshots.items():
            self.check_tree(self.model.trees[snapshot.root], snapshot=name, version="0" * 64, fork="no-such")
        for name, fork in self.model.forks.items():
            self.check_tree(self.model.trees[fork.root], fork=name)

    def log(self) -> list[Any]:
        """The whole log, newest first, in pages of seven."""
        entries: list[Any] = []
        query: dict[str, object] = {"limit": 7}
        while True:
            page = self.expect(200, "GET", "/versions/log", **query)
            entries += page["commits"]
            if not page["has_more"]:
                return entries
            query["after"] = page["next_cursor"]

    @rule(pick=PICK)
    def read_the_log(self, pick: int) -> None:
        entries = self.log()
        moves = [(item["parent"], item["version"]) for item in entries if item["parent"] != item["version"]]
        wanted = list(zip(self.model.moves, self.model.moves[1:], strict=False))[::-1]
        assert moves[: len(wanted)] == wanted
        assert all(version == self.model.moves[0] for _, version in moves[len(wanted) :])
        if entries:
            moment = self.pick(pick, entries)["timestamp"]
            version = next(item["version"] for item in entries if item["timestamp"] <= moment)
            assert self.head(self.here, at=str(moment)) == version
            self.check_tree(self.model.trees[version], at=str(moment))

    @rule(path=FILE_PATHS)
    def read_a_history(self, path: str) -> None:
        entries = self.expect(200, "GET", f"/version/file-history{path}", commits="true", limit=1000)[
            "history"
        ]
        wanted = history_of(self.model, path)
        told = {(item["change_type"], item["version"]) for item in entries}
        assert told >= {(kind, version) for kind, version, _ in wanted}, (path, entries, wanted)
        contents = [
            item for item in entries if (item["change_type"], item["version"]) in {w[:2] for w in wanted}
        ]
        assert [item["version"] for item in contents] == [version for _, version, _ in wanted]
        for item in entries:
            entry = self.model.trees[item["version"]].get(path)
            assert (item["change_type"] == "deleted") == (entry is None)
            if entry is not None:
                assert (item["content_hash"], item["size"]) == (entry.hash, len(entry.content))
        names = [item["name"] for item in self.expect(200, "GET", "/versions/snapshots")["snapshots"]][::-1]
        over = self.expect(200, "GET", f"/versions/history{path}", limit=1000)["history"]
        expected = snapshot_history(self.model, names, path)
        assert [(item["snapshot"], item["change_type"]) for item in over] == [item[:2] for item in expected]

    @rule(first=PICK, second=PICK)
    def compare(self, first: int, second: int) -> None:
        roots = list(self.model.trees)
        source, to = self.pick(first, roots), self.pick(second, roots)
        value = self.expect(200, "GET", "/versions/compare", **{"from": source, "to": to})
        assert (value["from"], value["to"]) == (source, to)
        # What is a file on one side and a directory on the other is one change of its own kind.
        found = {
            item["path"]: item
            for item in value["changes"]
            if item["entry_type"] != 3 and item["path"] != EITHER
        }
        expected = changes(self.model.trees[source], self.model.trees[to])
        expected.pop(EITHER, None)
        assert set(found) <= set(expected)
        for path, (before, after) in expected.items():
            kind = change_type(before, after)
            if kind == "unchanged" and path not in found:
                continue
            item = found[path]
            assert item["change_type"] in (kind, "modified" if kind == "unchanged" else kind)
            for side, entry in (("before", before), ("after", after)):
                assert (item[side] and item[side]["hash"]) == (entry and entry.hash)

    # -- the second database -----------------------------------------------------------------------

    def check_copy(self) -> None:
        """The second database is what the model says."""
        assert self.head(self.there) == self.copy.head
        self.check_tree(self.copy.tree_of("HEAD"), self.there)

    @rule(pick=PICK, promote=st.booleans(), of_snapshot=st.booleans())
    def carry_an_export(self, pick: int, promote: bool, of_snapshot: bool) -> None:
        names = list(self.model.snapshots)
        query, root = {}, self.model.head
        if of_snapshot and names:
            name = self.pick(pick, names)
            query, root = {"snapshot": name}, self.model.snapshots[name].root
        answer = self.ask("POST", "/versions/export", b"", **query)
        assert answer.status == 200, answer.body[:500]
        flag = str(promote).lower()
        value = self.expect(200, "POST", "/versions/import", answer.body, place=self.there, promote=flag)
        assert (value["version_hash"], value["head_promoted"]) == (root, promote)
        self.copy.know(root, self.model.trees[root])
        if promote:
            self.copy.move_head(root, self.model.trees[root])
        self.check_copy()
        self.check_tree(self.model.trees[root], self.there, version=root)

    @rule(first=PICK, second=PICK, fitting=st.booleans(), promote=st.booleans(), force=st.booleans())
    def carry_a_patch(self, first: int, second: int, fitting: bool, promote: bool, force: bool) -> None:
        roots = list(self.model.trees)
        source, to = self.pick(first, roots), self.pick(second, roots)
        if fitting and self.copy.head in self.model.trees:
            source = self.copy.head
        answer = self.ask("POST", "/versions/diff", b"", **{"from": source, "to": to})
        assert answer.status == 200, answer.body[:500]
        query = {"promote": str(promote).lower(), "force": str(force).lower()}
        done = self.ask("POST", "/versions/import", answer.body, place=self.there, **query)
        if source == self.copy.head:
            assert done.status == 200, done.body
        elif not force:
            assert (done.status, done.json()["code"]) == (409, "CONFLICT"), done.body
            assert source in done.json()["error"]
            assert self.copy.head in done.json()["error"]
        else:
            assert done.status in (200, 400), done.body
        if done.status == 200:
            self.copy.know(to, self.model.trees[to])
            if promote:
                self.copy.move_head(to, self.model.trees[to])
            self.check_tree(self.model.trees[to], self.there, version=to)
        self.check_copy()

    @rule(path=PATHS, number=st.integers(0, 3))
    def write_elsewhere(self, path: str, number: int) -> None:
        entry = Entry(b"%d written elsewhere" % number, 9)
        headers = {"Content-Type": "text/plain", "X-Svc-Created-At": "9", "X-Svc-Updated-At": "9"}
        answer = self.there.request("PUT", f"/files{path}", entry.content, headers, {})
        tree = self.copy.tree_of("HEAD")
        if in_the_way(tree, path) or (answer.status == 409 and self.may_be_empty(tree, path)):
            assert answer.status == 409, answer.body
            return
        assert answer.status in (200, 201), answer.body
        self.copy.move_head(self.head(self.there), {**self.copy.tree_of("HEAD"), path: entry})
        self.check_copy()

    @rule(pick=PICK, here=st.booleans())
    def promote_a_hash(self, pick: int, here: bool) -> None:
        place, model = (self.here, self.model) if here else (self.there, self.copy)
        known = list({**self.model.trees, **self.copy.trees})
        root = self.pick(pick, known)
        answer = self.ask("POST", "/versions/promote", {"hash": root}, place=place)
        if root not in model.trees:
            # It may have come along within something else, as a tree that was never a version.
            assert answer.status == 404, answer.body
            return
        assert answer.status == 200, answer.body
        assert answer.json()["head"] == root
        model.move_head(root, model.trees[root])

    # -- restarts ----------------------------------------------------------------------------------

    @rule(kill=st.booleans(), here=st.booleans())
    def restart(self, kill: bool, here: bool) -> None:
        (self.here if here else self.there).reopen(kill=kill)

    # -- always ------------------------------------------------------------------------------------

    @invariant()
    def head_is_as_the_model_says(self) -> None:
        assert self.head(self.here) == self.model.head
        self.check_tree(self.model.tree_of("HEAD"))

    @invariant()
    def snapshots_are_as_the_model_says(self) -> None:
        found = self.expect(200, "GET", "/versions/snapshots")["snapshots"]
        assert {item["name"]: (item["root_hash"], item["kind"], item["metadata"]) for item in found} == {
            name: (snapshot.root, snapshot.kind, snapshot.metadata)
            for name, snapshot in self.model.snapshots.items()
        }
        times = [item["created_at"] for item in found]
        assert times == sorted(times, reverse=True)

    @invariant()
    def forks_are_as_the_model_says(self) -> None:
        found = self.expect(200, "GET", "/version/forks")
        wanted = {name: (fork.root, fork.base) for name, fork in self.model.forks.items()}
        assert {item["name"]: (item["root_hash"], item["base"]) for item in found} == wanted
