"""Clients of the nodes: each writes on one node, what it likes, and notes what was acknowledged."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections import Counter
from typing import Any

from cluster.history import Acknowledged, History
from cluster.node import Node
from svc_blackbox.client import Client, Response, files

__all__ = ["KINDS", "Writer"]

CUT = (OSError, http.client.HTTPException)
FINE = (200, 201, 202, 400, 404, 409, 412, 503, 507)
KINDS = 7
"""Documents have a number below this one, by which they are found."""
_LARGE = 300_000


class Writer:
    """A client of one node.

    Args:
        node: the node.
        history: takes what was acknowledged.
        seed: of its choices.
    """

    def __init__(self, node: Node, history: History, seed: int) -> None:
        self.node = node
        self.statuses: Counter[int] = Counter()
        self.done: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self._history = history
        self._chance = random.Random(f"{node.name} {seed}")
        self._number = 0
        self._snapshots: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name=f"writes on {node.name}")
        self._thread.start()

    def tell_to_stop(self) -> None:
        """Lets the work end soon."""
        self._stop.set()

    def stop(self) -> None:
        """Ends the work; raises what went wrong."""
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), f"a client of {self.node.name} hangs"
        if self.failure is not None:
            raise self.failure

    def _work(self) -> None:
        client = self.node.client()
        try:
            while not self._stop.wait(self._chance.uniform(0.02, 0.2)):
                with self.node.writing:
                    if self.node.is_up:
                        self._try(client)
        except BaseException as error:
            error.add_note(f"a client of {self.node.name}")
            self.failure = error
        finally:
            client.close()

    def _try(self, client: Client) -> None:
        kinds = {
            self._put: 45,
            self._delete: 12,
            self._move: 13,
            self._batch: 8,
            self._remove_directory: 4,
            self._make_directory: 3,
            self._snapshot: 4,
            self._restore: 2,
            self._promote: 2,
            self._resolve: 4,
        }
        [act] = self._chance.choices([*kinds], [*kinds.values()])
        try:
            act(client)
        except CUT:
            self.done["cut"] += 1

    def _path(self, depth: int = 3) -> str:
        parts = [self._chance.choice("abc"), self._chance.choice("xy"), f"{self._chance.randrange(6)}.json"]
        return "/".join(parts[:depth]) if depth < 3 or self._chance.random() < 0.8 else parts[2]

    def _content(self) -> bytes:
        self._number += 1
        document: dict[str, Any] = {"kind": self._number % KINDS, "of": self.node.name, "n": self._number}
        if self._chance.random() < 0.06:
            document["filling"] = self._chance.randbytes(_LARGE // 2).hex()
        return json.dumps(document).encode()

    def _put(self, client: Client) -> None:
        path = self._path()
        fields = {"Content-Type": "application/json"}
        response = self._take("put", client.put_file(path, self._content(), fields))
        if response is not None:
            self._note(response.json())

    def _note(self, stored: Any) -> None:
        self._history.acknowledged.append(
            Acknowledged(self.node.name, stored["path"], stored["content_hash"])
        )

    def _delete(self, client: Client) -> None:
        self._take("delete", client.delete(files(self._path())))

    def _remove_directory(self, client: Client) -> None:
        depth = self._chance.choice((1, 2, 2))
        self._take("remove directory", client.delete(files(self._path(depth)), recursive="true"))

    def _make_directory(self, client: Client) -> None:
        self._take("mkdir", client.post("/files/mkdir", {"path": f"/{self._path(2)}"}))

    def _move(self, client: Client) -> None:
        depth = self._chance.choice((1, 2, 2, 3, 3))
        body = {"to": f"/{self._path(depth)}", "overwrite": True}
        self._take(f"move {depth}", client.send_json("PATCH", files(self._path(depth)), body))

    def _batch(self, client: Client) -> None:
        paths = {self._path() for _ in range(5)}
        operations: list[dict[str, Any]] = [
            {"op": "put", "path": f"/{path}", "content": self._content().decode()} for path in sorted(paths)
        ]
        self._take("batch", client.post("/files/batch", {"operations": operations}))

    def _snapshot(self, client: Client) -> None:
        self._number += 1
        name = f"{self.node.name}-{self._number}"
        if self._take("snapshot", client.post("/versions/snapshots", {"name": name})) is not None:
            self._snapshots.append(name)

    def _restore(self, client: Client) -> None:
        if not self._snapshots:
            return
        name = self._chance.choice(self._snapshots)
        if self._chance.random() < 0.5:
            self._take("restore", client.post("/versions/restore", {"name": name}))
        else:
            target = f"/versions/file-restore/{self._path(self._chance.choice((2, 3)))}"
            self._take("file restore", client.post(target, {"snapshot": name}))

    def _promote(self, client: Client) -> None:
        self._number += 1
        name = f"fork-{self.node.name}-{self._number}"
        if self._take("fork", client.post("/versions/forks", {"name": name})) is None:
            return
        for _ in range(2):
            self._take("fork put", client.put_file(self._path(), self._content(), fork=name))
        self._take("promote", client.post(f"/versions/forks/{name}/promote", {"force": True}))
        self._take("abandon", client.delete(f"/versions/forks/{name}"))

    def _resolve(self, client: Client) -> None:
        response = self._take("list conflicts", client.get("/sync/conflicts", limit=50))
        rows = [] if response is None else response.json()["conflicts"]
        if not rows:
            return
        row = self._chance.choice(rows)
        path = row["path"]
        sides = [one[side] for one in rows if one["path"] == path for side in ("winner", "loser")]
        # What is picked is written, and all else that stood there is gone: other clients may do the same.
        self._history.loose |= {(path, side["hash"]) for side in sides if side["hash"] is not None}
        body = {"pick": self._chance.choice(("winner", "loser"))}
        self._take("resolve", client.post("/sync/conflicts" + files(path)[6:], body))

    def _take(self, what: str, response: Response) -> Response | None:
        """Counts an answer; returns it if the node did what it was told."""
        self.statuses[response.status] += 1
        assert response.status in FINE, (what, response.status, response.body[:1000])
        if response.status >= 400:
            return None
        self.done[what] += 1
        return response
