"""Every route that writes does what the model permits and the tree allows, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from blake3 import blake3
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from authorization_model.callers import random_caller
from authorization_model.rules import Path, may
from authorization_model.scale import scaled
from authorization_model.service import FORK, Service, serving
from authorization_model.trees import DIRECTORIES, FILES, LINKS, Node, State, View, random_states, text_of

WRITES_OF_ONE = 44
NEW: list[Path] = [("c",), ("a", "c"), ("c", "d", "x.txt"), ("b", "new.txt"), ("l", "new.txt")]
Ends = tuple[Path, Path]
"""A path as it was asked for, and the place where its links lead."""


class Write:
    """One write. Each method gives the status, and whether the caller and whether the tree allow it."""

    def __init__(self, view: View, past: State, rng: random.Random) -> None:
        self.view = view
        self.past = past
        self.path = rng.choice([*DIRECTORIES[1:], *FILES, *FILES, *LINKS, *NEW])
        self.other = rng.choice([*DIRECTORIES, *FILES, *LINKS, *NEW, *NEW])
        self.flag = rng.random() < 0.5

    def ends(self, path: Path, final: bool = True) -> tuple[Ends, Node | None]:
        place, node = self.view.follow(path, final)
        return (path, place), node

    def may(self, letters: str, *paths: Path) -> bool:
        return all(may(self.view.caller, letter, path) for letter in letters for path in paths)

    def fits(self, place: Path) -> bool:
        """Whether something may stand at a place: only directories above it."""
        above = [self.view.node(place[:length]) for length in range(len(place))]
        return all(node is None or node.kind == "d" for node in above)

    def takes(self, place: Path, kind: str) -> bool:
        """Whether something may come to a place: where nothing is, or something of the kind.

        A link that the caller may not see leads nowhere for it, and yet stands there.
        """
        node = self.view.node(place)
        return self.fits(place) and (node is None or node.kind == kind)

    def may_put(self, ends: Ends, node: Node | None) -> bool:
        asked, place = ends
        may_update = self.may("u", place) and node is not None
        letter = "u" if may_update or (node is not None and self.may("c", place)) else "c"
        return self.may(letter, asked, place)

    def put(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        ends, node = self.ends(self.path)
        status = service("PUT", f"/files{text_of(self.path)}", "new", content_type="text/plain", fork=fork)
        possible = self.takes(ends[1], "f")
        return status.status_code, self.may_put(ends, node), possible

    def put_by_batch(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        ends, node = self.ends(self.path)
        operation = {"op": "put", "path": text_of(self.path), "content": "new"}
        status = service("POST", "/files/batch", {"operations": [operation]}, fork=fork).status_code
        possible = self.takes(ends[1], "f")
        return status, self.may_put(ends, node), possible

    def commit_chunks(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        """A file of a chunk that files at HEAD hold: whoever reads none of them misses the chunk."""
        ends, node = self.ends(self.path)
        contents = sorted({one.content for one in self.view.state.values() if one.kind == "f"})
        content = contents[len(self.other) % len(contents)] if contents else "nowhere"
        body = {
            "files": [{"path": text_of(self.path), "chunk_hashes": [blake3(content.encode()).hexdigest()]}]
        }
        status = service("POST", "/blobs/commit", body, fork=fork).status_code
        holders = [at for at, one in self.view.state.items() if (one.kind, one.content) == ("f", content)]
        unlimited = self.view.caller.is_root and not self.view.caller.rules
        has_chunk = bool(holders) and (unlimited or any(self.view.may("r", at) for at in holders))
        return status, self.may_put(ends, node), self.takes(ends[1], "f") and has_chunk

    def merge_fork(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        """Another fork into this one: each change needs its permission, and a key with rules finds no route.

        What the merge makes of the trees, root finds out; who may, the model says.
        """
        body = {"from": f"forks/{FORK}", "strategy": "theirs"}
        trial = service.new_fork()
        assert service.as_root("POST", "/versions/merge", {**body, "into": trial}).status_code == 200
        before, after = self.view.state, service.state_of(trial)
        status = service("POST", "/versions/merge", {**body, "into": fork}).status_code
        needed = [
            (letter, at) for at in {**before, **after} for letter in needs(before.get(at), after.get(at))
        ]
        allowed = not self.view.caller.rules and all(self.may(letter, at) for letter, at in needed)
        if not 200 <= status < 300:
            assert service.state_of(fork) == before
        return status, allowed, True

    def merge(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        ends, node = self.ends(self.path)
        kind = "application/merge-patch+json"
        answer = service("PATCH", f"/files{text_of(self.path)}", {"a": 1}, content_type=kind, fork=fork)
        allowed = self.may_put(ends, node) and (node is None or self.may("r", *ends))
        return answer.status_code, allowed, self.takes(ends[1], "f")

    def link(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        ends, node = self.ends(self.path, final=False)
        answer = service("PUT", f"/links{text_of(self.path)}", {"target": "/z/none"}, fork=fork)
        possible = self.takes(ends[1], "l")
        return answer.status_code, self.may_put(ends, node), possible

    def delete(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        ends, node = self.ends(self.path, final=False)
        url = f"/files{text_of(self.path)}"
        answer = service("DELETE", url, fork=fork, recursive=str(self.flag).lower())
        below = self.view.below(ends[1])
        allowed = self.may("d", *ends) and (not self.flag or self.may("d", *below))
        return answer.status_code, allowed, node is not None and (self.flag or not below)

    def mkdir(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        ends, _ = self.ends(self.path)
        answer = service("POST", "/files/mkdir", {"path": text_of(self.path)}, fork=fork)
        return answer.status_code, self.may("c", *ends), self.takes(ends[1], "")

    def copy(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        source, node = self.ends(self.path, final=False)
        (_, directory), there = self.ends(self.other)
        target = (*directory, self.path[-1])
        body = {"paths": [text_of(self.path)], "destination": text_of(self.other)}
        answer = service("POST", "/files/copy", body, fork=fork)
        allowed = self.may("r", *source, *self.view.below(source[1])) and self.may_make_all(source[1], target)
        possible = there is None or there.kind == "d"
        return answer.status_code, allowed, possible and self.may_go(source[1], node, target)

    def move(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        to = text_of(self.other)
        if self.flag:
            operation = {"op": "move", "from": text_of(self.path), "to": to}
            status = service("POST", "/files/batch", {"operations": [operation]}, fork=fork).status_code
        else:
            status = service("PATCH", f"/files{text_of(self.path)}", {"to": to}, fork=fork).status_code
        source, node = self.ends(self.path, final=False)
        target, _ = self.ends(self.other, final=False)
        allowed = self.may("rd", *source, *self.view.below(source[1])) and self.may("c", *target)
        return (
            status,
            allowed and self.may_make_all(source[1], target[1]),
            self.may_go(source[1], node, target[1]),
        )

    def may_make_all(self, source: Path, target: Path) -> bool:
        return self.may("c", target, *(target + at[len(source) :] for at in self.view.below(source)))

    def may_go(self, source: Path, node: Node | None, target: Path) -> bool:
        """Whether something is there that can go where nothing is, and not into itself."""
        is_free = self.view.node(target) is None and self.fits(target) and target[: len(source)] != source
        return node is not None and is_free

    def restore(self, service: Service, fork: str) -> tuple[int, bool, bool]:
        body = {"path": text_of(self.path), "version": service.snapshot_root}
        answer = service("POST", "/files/restore", body, fork=fork)
        below = View(self.view.caller, self.past).below(self.path)
        possible = self.path in self.past and self.path not in self.view.state and self.fits(self.path)
        return answer.status_code, self.may("cd", self.path, *below), possible


def needs(before: Node | None, after: Node | None) -> str:
    """The permissions that a change of what stands at a path needs."""
    if before is None or after is None:
        return ("" if before is None else "d") + ("" if after is None else "c")
    if "d" in (before.kind, after.kind):
        return "" if before.kind == after.kind else "dc"
    return "" if before == after else "u"


Writer = Callable[[Write, Service, str], tuple[int, bool, bool]]
WRITERS: list[Writer] = [
    *(Write.put, Write.put_by_batch, Write.merge, Write.link, Write.delete),
    *(Write.mkdir, Write.copy, Write.move, Write.restore, Write.commit_chunks, Write.merge_fork),
]


@pytest.mark.timeout(0)
@settings(max_examples=scaled(10), phases=(Phase.generate,))  # A smaller seed is no simpler case.
@given(seed=st.integers(0, 2**32))
def test_writes_are_those_of_the_model(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = random.Random(seed)
    past, head, fork = random_states(rng)
    with serving(tmp_path_factory.mktemp("model") / "t.svcdb", past, head, fork) as service:
        for number in range(WRITES_OF_ONE):
            caller = random_caller(rng)
            service.become(caller)
            write = Write(View(caller, head), past, rng)
            writer = WRITERS[number % len(WRITERS)]
            status, allowed, possible = writer(write, service, service.new_fork())
            what = (writer.__name__, write.path, write.other, write.flag, caller, status, allowed, possible)
            assert (status < 300) is (allowed and possible), what
            if possible and not allowed:
                assert status == (404 if caller.rules else 403), what
            assert status in (200, 201, 400, 403, 404, 409), what
            assert status != 403 or not (allowed or caller.rules), what
