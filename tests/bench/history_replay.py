"""Real histories in svc beside git: size, time to store, and time of histories and comparisons."""

from __future__ import annotations

import http.client
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Self
from urllib.parse import quote

from measurement import Bench
from report import seconds_of
from servers import Server, svc

from svc.database import Database

sys.path.append(str(Path(__file__).parents[1]))

from svc_blackbox.git_history import (
    FALCON,
    SPHINX,
    changes_of,
    check_out,
    git,
    own_repository,
    release_repository,
    tags_of,
)
from svc_blackbox.trees import total_size

_PATHS = 20


def measure(bench: Bench) -> None:
    """Size and speed of the history of falcon, Sphinx and svc itself, beside git."""
    repositories: dict[str, Callable[[Path], Path]] = {
        "svc": own_repository,
        "falcon": lambda place: release_repository(place, "falcon", FALCON),
    }
    if not bench.quick:
        repositories["Sphinx"] = lambda place: release_repository(place, "sphinx", SPHINX)
    for name, make in repositories.items():
        repository = bench.material(f"history-{name}", make)
        database = bench.directory / f"{name}.svcdb"
        with svc(database) as server:
            versions = _replay(bench, name, repository, database)
            _sizes(bench, name, repository, database)
            _questions(bench, name, repository, server, versions)
            if name == "falcon":
                _unrelated(bench, repository, server, database)


def _replay(bench: Bench, name: str, repository: Path, database: Path) -> dict[str, str]:
    """Stores each commit of git in one of svc; returns the versions by commit."""
    versions: dict[str, str] = {}
    seconds = 0.0
    with Database(database) as opened:
        for change in changes_of(repository):
            start = time.perf_counter()
            with opened.transaction(message=change.message) as transaction:
                for path in change.deleted:
                    transaction.delete(tuple(path.split("/")), recursive=True)
                for path, content in change.written.items():
                    transaction.put(tuple(path.split("/")), content)
                for path, target in change.links.items():
                    transaction.link(tuple(path.split("/")), target)
            seconds += time.perf_counter() - start
            versions[change.commit] = opened.head().root.hex()
    bench.report.limit(
        f"replay of {name}: {len(versions)} commits", [seconds / len(versions) * 1000], "ms each"
    )
    return versions


def _sizes(bench: Bench, name: str, repository: Path, database: Path) -> None:
    own = database.stat().st_size / 1e6
    packed = sum(file.stat().st_size for file in (repository / "objects").rglob("*") if file.is_file()) / 1e6
    with tempfile.TemporaryDirectory(dir=bench.directory) as directory:
        plain = sum(
            total_size(check_out(repository, commit, Path(directory) / str(number))) / 1e6
            for number, commit in enumerate(tags_of(repository).values())
        )
    bench.report.compare(f"size of the history of {name}", [own], "MB", "git, packed", [packed])
    bench.report.compare(f"size of the history of {name}", [own], "MB", "copies of the tags", [plain])


def _questions(bench: Bench, name: str, repository: Path, server: Server, versions: dict[str, str]) -> None:
    paths = _busiest(repository)
    tags = list(dict.fromkeys(tags_of(repository).values()))
    pairs = list(pairwise(tags))
    rounds = range(bench.rounds(3))
    with _Connection(server) as connection:

        def histories() -> None:
            for path in paths:
                assert connection.get(f"/versions/history/{quote(path)}?commits=true&limit=1000")["history"]

        def logs() -> None:
            for path in paths:
                assert git(repository, "log", "--format=%H", "--", path)

        def comparisons() -> None:
            for source, to in pairs:
                connection.get(f"/versions/compare?from={versions[source]}&to={versions[to]}")

        def differences() -> None:
            for source, to in pairs:
                git(repository, "diff", "--stat", source, to)

        histories()
        for work, mine, theirs, peer, count in (
            ("history of a file", histories, logs, "git log -- path", len(paths)),
            ("comparison of two tags", comparisons, differences, "git diff --stat", len(pairs)),
        ):
            times = [(seconds_of(mine) / count * 1000, seconds_of(theirs) / count * 1000) for _ in rounds]
            bench.report.compare(
                f"{work}, {name}",
                [one for one, _ in times],
                "ms",
                peer,
                [other for _, other in times],
                at_most=True,
            )


def _unrelated(bench: Bench, repository: Path, server: Server, database: Path) -> None:
    """A file's history after many commits that did not touch it."""
    paths = _busiest(repository)
    count = bench.choose(5_000, 500)
    with _Connection(server) as connection:

        def histories() -> None:
            for path in paths:
                connection.get(f"/versions/history/{quote(path)}?commits=true&limit=1000")

        def log() -> None:
            for path in paths:
                connection.get(f"/versions/log?path=/{quote(path)}&limit=1000")

        before = [seconds_of(histories) / len(paths) * 1000 for _ in range(bench.rounds(3))]
        with Database(database) as opened:
            for number in range(count):
                with opened.transaction() as transaction:
                    transaction.put(("elsewhere", f"{number % 100}"), b"%d" % number)
        histories()
        after = [seconds_of(histories) / len(paths) * 1000 for _ in range(bench.rounds(3))]
        bench.report.compare(
            f"history of a file after {count:,} commits to others",
            after,
            "ms",
            "before them",
            before,
            2,
            at_most=True,
        )
        bench.report.limit(
            f"log of a path after {count:,} commits to others",
            [seconds_of(log) / len(paths) * 1000 for _ in range(bench.rounds(3))],
            "ms",
        )


def _busiest(repository: Path) -> list[str]:
    """The files that most commits changed."""
    counts = Counter(path for change in changes_of(repository) for path in change.written)
    return sorted(counts, key=lambda path: (-counts[path], path))[:_PATHS]


class _Connection:
    """One connection to a server, kept alive."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection = http.client.HTTPConnection(*server.address, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, target: str) -> dict[str, object]:
        """The JSON of a GET that must succeed."""
        self._connection.request("GET", target, headers=dict(self._server.headers))
        response = self._connection.getresponse()
        body = response.read()
        assert response.status == 200, (target, response.status, body[:500])
        found: dict[str, object] = json.loads(body)
        return found
