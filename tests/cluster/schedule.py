"""A run: a seed says what happens to which node and when; in the end all is mended and the law is checked."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster.history import History, State, read_state
from cluster.network import Line, Network
from cluster.node import Node
from cluster.watching import Watcher
from cluster.writing import KINDS, Writer
from svc_blackbox.client import Client, Response
from svc_blackbox.server import run_svc

__all__ = ["Schedule"]

INDEXES = {"glob": "**/*.json", "indexes": [{"name": "kind", "type": "exact", "value_type": "integer"}]}
AGREEMENT_S = 400.0
JOIN_S = 400.0
"""Who joins copies the tree of each snapshot, of which there may be 200 by then."""
_COLLECTION_S = 200.0
"""It answers at its end, which takes long where ten processes share a core."""
_MOST_NODES = 6
_FULL = "enable_random name=posix/io/rw/pwritev,probability=0.5,failinfo=28"
_NOT_FULL = "disable name=posix/io/rw/pwritev"


class Schedule:
    """A cluster and what happens to it.

    Args:
        seed: says what.
        directory: for files.
        network: between the nodes.
        nodes: how many there are at first.
        steps: how often something happens.
        has_special: whether one node has a clock that is moved, and one a disk that is full at times.
    """

    def __init__(
        self, seed: int, directory: Path, network: Network, *, nodes: int, steps: int, has_special: bool
    ) -> None:
        self.seed = seed
        self.log: list[str] = []
        self.history = History()
        self.compared: Counter[str] = Counter()
        self._chance = random.Random(seed)
        self._directory = directory
        self._network = network
        self._steps = steps
        self._nodes: list[Node] = []
        self._writers: list[Writer] = []
        self._watchers: dict[str, Watcher] = {}
        self._removed: list[Node] = []
        self._kept: dict[str, tuple[Path, int]] = {}
        self._has_copy = False
        self._began = time.monotonic()
        for number in range(nodes):
            has_own_clock = has_special and number == 1
            self._make(number, has_own_clock=has_own_clock, has_faulty_disk=has_special and number == 2)

    def run(self) -> None:
        """Does everything, and checks what must hold."""
        try:
            self._found()
            for _ in range(self._steps):
                time.sleep(self._chance.uniform(0.3, 1.5))
                self._step()
            self._heal()
            self._check()
        except BaseException as error:
            error.add_note(f"seed {self.seed}\n" + "\n".join(self.log))
            raise

    def close(self) -> None:
        """Ends all processes."""
        for writer in self._writers:
            writer._stop.set()
        for node in self._nodes:
            node.close()

    def _say(self, text: str) -> None:
        self.log.append(f"{time.monotonic() - self._began:6.1f} {text}")

    def _make(self, number: int, **how: Any) -> Node:
        workers = 2 if number == 0 else 1
        node = Node(f"n{number}", self._directory, workers, **how)
        self._nodes.append(node)
        return node

    # Nodes come and go.

    def _found(self) -> None:
        first, *others = self._nodes
        first.start()
        with first.client() as client:
            client.store("/.svc-config/indexes.json", json.dumps(INDEXES).encode())
        self._begin(first)
        for node in others:
            self._join(node, first)

    def _begin(self, node: Node) -> None:
        self._writers.append(Writer(node, self.history, self.seed))
        self._watchers[node.name] = Watcher(node)

    def _join(self, node: Node, member: Node) -> None:
        node.start()
        self._connect(node)
        with node.client() as client:
            body = {
                "address": node.lines[member.name].address,
                "own_address": member.lines[node.name].address,
            }
            self._post(client, "/sync/enter", body)
        self._wait(lambda: not self._status(node)["is_copying"], JOIN_S, f"{node.name} has its first copy")
        self._introduce(node)
        self._begin(node)
        self._say(f"{node.name} has joined by {member.name}")

    def _connect(self, node: Node) -> None:
        """Opens lines between a node and all others that run or have run."""
        for other in self._nodes:
            if other is not node and other.name not in node.lines and (other.lines or other.is_up):
                node.lines[other.name] = self._network.line(other.port)
                other.lines[node.name] = self._network.line(node.port)

    def _introduce(self, node: Node) -> None:
        for other in self._nodes:
            if other is node or not other.is_up or other in self._removed:
                continue
            for one, line in ((node, node.lines[other.name]), (other, other.lines[node.name])):
                self._wait(lambda one=one, line=line: self._knows(one, line), JOIN_S, f"peers of {one.name}")

    @staticmethod
    def _knows(node: Node, line: Line) -> bool:
        with node.client() as client:
            return client.post("/sync/peers", {"address": line.address}).status == 201

    # What happens.

    def _step(self) -> None:
        acts: dict[Callable[[Node], str | None], int] = {
            self._cut: 10,
            self._cut_silently: 4,
            self._slow: 4,
            self._double: 4,
            self._mend: 8,
            self._kill: 8,
            self._kill_background: 8,
            self._kill_workers: 5,
            self._restart: 4,
            self._collect: 6,
            self._fill_disk: 4,
            self._move_clock: 6,
            self._join_one: 3,
            self._keep_file: 4,
        }
        if self.seed % 2:
            acts |= {self._put_back: 6, self._copy: 3, self._remove: 4, self._return: 4}
        [act] = self._chance.choices([*acts], [*acts.values()])
        node = self._chance.choice(self._nodes)
        done = act(node)
        if done is not None:
            self._say(f"{node.name}: {done}")

    def _some_lines(self, node: Node) -> list[Line]:
        """Either all lines to and from a node, or all between two halves."""
        if self._chance.random() < 0.5:
            others = [one for one in self._nodes if one is not node]
            return [*node.lines.values(), *(one.lines[node.name] for one in others if node.name in one.lines)]
        half = {one.name for one in self._nodes if self._chance.random() < 0.5}
        return [
            line
            for one in self._nodes
            for name, line in one.lines.items()
            if (one.name in half) != (name in half)
        ]

    def _cut(self, node: Node) -> str:
        lines = self._some_lines(node)
        self._network.cut(lines)
        return f"{len(lines)} lines are cut"

    def _cut_silently(self, node: Node) -> str:
        lines = self._some_lines(node)
        self._network.cut(lines, silent=True)
        return f"{len(lines)} lines take everything and carry nothing"

    def _slow(self, node: Node) -> str:
        for line in node.lines.values():
            line.delay_s = self._chance.uniform(0.02, 0.4)
        return "its lines are slow"

    def _double(self, node: Node) -> str:
        for line in node.lines.values():
            line.is_doubled = True
        return "its lines carry everything twice"

    def _mend(self, _: Node) -> str:
        self._network.mend()
        return "all lines are mended"

    def _kill(self, node: Node) -> str:
        node.kill()
        time.sleep(self._chance.uniform(0, 1))
        node.start()
        return "killed, and started again"

    def _kill_background(self, node: Node) -> str:
        node.kill_some("background")
        return "its background process is killed"

    def _kill_workers(self, node: Node) -> str:
        node.kill_some("worker")
        return "its workers are killed"

    def _restart(self, node: Node) -> str:
        node.stop()
        node.start()
        return "stopped, and started again"

    def _collect(self, node: Node) -> str:
        """What is collected was read before; who writes on the node waits meanwhile."""
        with node.writing, node.client(_COLLECTION_S) as client:
            self.history.read(node.name, client)
            status = client.request("POST", "/system/gc").status
        return f"collection: {status}"

    def _fill_disk(self, node: Node) -> str | None:
        node = next((one for one in self._nodes if one.has_faulty_disk), node)
        if not node.has_faulty_disk:
            return None
        node.tell_disk(_FULL)
        time.sleep(self._chance.uniform(0.5, 2))
        node.tell_disk(_NOT_FULL)
        return f"the disk of {node.name} was full"

    def _move_clock(self, node: Node) -> str | None:
        node = next((one for one in self._nodes if one.has_own_clock), node)
        if not node.has_own_clock:
            return None
        seconds = self._chance.choice((-60, -20, -5, 0, 5, 20, 60))
        node.set_clock(seconds)
        return f"the clock of {node.name} is {seconds} s ahead"

    def _join_one(self, _: Node) -> str | None:
        if len(self._nodes) > _MOST_NODES or self._removed:
            return None
        member = self._nodes[0]
        self._network.mend()
        self._reset_clocks()
        self._join(self._make(len(self._nodes)), member)
        return "a node has joined"

    def _keep_file(self, node: Node) -> str:
        """Takes a copy of the file, for later."""
        with node.writing:
            with node.client() as client:
                sequence = self.history.read(node.name, client)
            node.stop()
            place = self._directory / f"{node.name}.kept"
            node.copy_to(place)
            node.start()
        self._kept[node.name] = place, sequence
        return f"its file was copied at {sequence}"

    def _put_back(self, node: Node) -> str | None:
        if node.name not in self._kept or node in self._removed:
            return None
        place, sequence = self._kept.pop(node.name)
        with node.writing:
            with node.client() as client:
                self.history.read(node.name, client)
            node.kill()
            node.put_back(place)
            self.history.lose(node.name, sequence)
            node.start()
        self.history.has_returns = True
        return f"its file of {sequence} was put back"

    def _copy(self, node: Node) -> str | None:
        """A copy of the file runs as a server of its own, beside the original, which the others reach."""
        is_plain = not node.has_own_clock and not node.has_faulty_disk
        if self._has_copy or self._removed or not is_plain or len(self._nodes) > _MOST_NODES:
            return None
        self._has_copy = True
        self._network.mend()
        self._reset_clocks()
        copy = self._make(len(self._nodes))
        with node.writing:
            with node.client() as client:
                self.history.read(node.name, client)
            node.stop()
            node.copy_to(copy.file)
            node.start()
            self.history.copied(node.name, copy.name)
        self._connect(copy)
        del copy.lines[node.name]
        self.history.has_returns = True
        copy.start()
        copy.lines[node.name] = self._network.line(node.port)
        original = self._status(node)["node_id"]
        self._wait(lambda: self._status(copy)["node_id"] != original, JOIN_S, "the copy has an id of its own")
        self._introduce(copy)
        self._begin(copy)
        return f"{copy.name} is a copy of its file"

    def _remove(self, node: Node) -> str | None:
        if self._removed or node is self._nodes[0]:
            return None
        node_id = self._status(node)["node_id"]
        with self._nodes[0].client() as client:
            status = client.delete(f"/sync/peers/{node_id}").status
        self.history.has_returns = True
        self._removed.append(node)
        return f"removed from the cluster: {status}"

    def _return(self, _: Node) -> str | None:
        if not self._removed:
            return None
        node = self._removed[-1]
        self._network.mend()
        self._reset_clocks()
        self._wait(lambda: self._has_returned(node), JOIN_S, f"{node.name} has joined anew")
        self._removed.pop()
        self._introduce(node)
        return f"{node.name} has joined anew"

    def _has_returned(self, node: Node) -> bool:
        with node.client() as client:
            line = node.lines[self._nodes[0].name]
            status = client.post("/sync/rejoin", {"address": line.address}).status
        return status == 200 or (status == 409 and self._status(node)["stale"] is None)

    def _reset_clocks(self) -> None:
        for node in self._nodes:
            if node.has_own_clock:
                node.set_clock(0)

    # The end.

    def _heal(self) -> None:
        self._say("all is mended")
        self._network.mend()
        self._reset_clocks()
        for writer in self._writers:
            writer.stop()
        self._return(self._nodes[0])
        self._wait(
            lambda: len({self._status(one)["head"] for one in self._nodes}) == 1, AGREEMENT_S, "one head"
        )
        self._wait(lambda: self._agrees() is not None, AGREEMENT_S, "one state")
        self._say("all nodes agree")
        for watcher in self._watchers.values():
            watcher.tell_to_stop()  # each ends with the next line that it gets

    def _head(self, node: Node) -> str:
        head: str = self._status(node)["head"]
        return head

    def _agrees(self) -> State | None:
        states = []
        for node in self._nodes:
            with node.client() as client:
                states.append(read_state(client))
        return states[0] if all(one == states[0] for one in states) else None

    def _check(self) -> None:
        for node in self._nodes:
            with node.client() as client:
                self.history.read(node.name, client)
        state = self._agrees()
        assert state is not None, "the nodes have agreed, and do not any more"
        self.compared += self.history.check(state)
        for node in self._nodes:
            with node.client() as client:
                self._check_queries(client, state)
            heard = self._watchers[node.name].finish()
            assert heard == set(state.files), (node.name, heard ^ set(state.files))
            assert self._status(node)["stale"] is None
        for node in self._nodes:
            node.stop()
            run_svc("verify", "-D", node.file)
        for writer in self._writers:
            self.compared += writer.done
            self.compared += Counter({f"status {status}": n for status, n in writer.statuses.items()})

    def _check_queries(self, client: Client, state: State) -> None:
        kinds: dict[int, set[str]] = {kind: set() for kind in range(KINDS)}
        for path in state.files:
            if not path.startswith("/.svc-config/"):
                kinds[json.loads(client.read(path))["kind"]].add(path)
        for kind, paths in kinds.items():
            where = {"field": "kind", "op": "eq", "value": kind}
            response = self._query(client, {"path": "/", "where": where, "limit": 1000})
            assert response.status == 200, response.body
            answered = {row["path"] for row in response.json()["results"]}
            assert answered == paths, (kind, answered ^ paths, client.get("/query/status").body)

    def _query(self, client: Client, question: Any) -> Response:
        """Asks, and asks again while the parsers are behind."""
        found: list[Response] = []

        def has_answer() -> bool:
            found.append(client.post("/query", question))
            return found[-1].status != 503

        self._wait(has_answer, AGREEMENT_S, "the index")
        return found[-1]

    @staticmethod
    def _post(client: Client, target: str, body: Any) -> Any:
        response = client.post(target, body)
        assert response.status in (200, 201), (target, body, response.status, response.body)
        return response.json()

    @staticmethod
    def _status(node: Node) -> Any:
        with node.client() as client:
            response = client.get("/sync/status")
            assert response.status == 200, response.body
            return response.json()

    def _wait(self, holds: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not self._holds(holds):
            if time.monotonic() > deadline:
                raise AssertionError(f"not so in {seconds} s: {what}\n{self._describe()}")
            time.sleep(0.2)

    @staticmethod
    def _holds(holds: Callable[[], bool]) -> bool:
        try:
            return holds()
        except OSError:
            return False  # A worker that was killed a moment ago.

    def _describe(self) -> str:
        lines = []
        for node in self._nodes:
            try:
                status = self._status(node)
            except (OSError, AssertionError) as error:
                lines.append(f"{node.name}: {error}")
                continue
            peers = {one["label"] or one["address"]: one["last_error"] for one in status["peers"]}
            lines.append(f"{node.name}: {status['head'][:12]} stale {status['stale']} {peers}")
            lines.append(node.server.log_text()[-1500:])
        return "\n".join(lines)
