"""What a cluster costs: bytes of few changes, large restores, writes beside peers, first copies, delays."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import cluster_nodes
import processes
import wrk
from cluster_nodes import Exchange, ask, copied_node, found, head, kill, line_to, node, wait_for
from measurement import Bench, write_random
from report import seconds_of
from servers import Server
from syncthing import Pair

from svc.database import Database

__all__ = ["changes", "cluster", "copies", "delays", "restores", "writes"]

_TEN = 10
_SIZE = 100
_INTERRUPTIONS = 20
_TWICE_MB = 5.4
"""20 of these are 1% of 10 GiB."""
_PEERS = 4


def cluster(bench: Bench) -> None:
    """All measurements of clusters, one after the other; they are also there by their own names."""
    for number, measure in enumerate((changes, delays, writes, copies, restores)):
        own = bench.directory / f"{number}"
        own.mkdir()
        measure(Bench(bench.report, own, bench.shared, bench.quick))


def changes(bench: Bench) -> None:
    """Ten changes among 1,000,000 files: bytes on the wire and round trips, without the contents."""
    count = bench.choose(1_000_000, 100_000)
    first = bench.directory / "a"
    _fill(first, count)
    away = found(first)
    with (
        node(first) as a,
        line_to(a) as line,
        copied_node(first, a, away, bench.directory / "b", line.address) as b,
    ):
        bytes_, trips, seconds = [], [], []
        for turn in range(bench.rounds(5)):
            wait_for(lambda: len(line.exchanges) > 2)
            line.exchanges.clear()
            began = time.monotonic()
            _change(a, turn, count)
            wait_for(lambda: head(b) == head(a))
            seconds.append(time.monotonic() - began)
            seen = len(line.exchanges)
            wait_for(lambda seen=seen: len(line.exchanges) > seen + 1)
            carried = max(line.exchanges[:-1], key=lambda one: one.received)
            bytes_.append(carried.sent + carried.received - _TEN * _SIZE)
            trips.append(float(len(carried.questions)))
        idle = [_bytes(one) for one in line.exchanges[:-1] if one is not carried]
    work = f"ten changes among {count:,} files"
    bench.report.limit(f"{work}: bytes on the wire beside their contents", bytes_, "B", 4_096)
    bench.report.limit(f"{work}: round trips", trips, "", 10)
    bench.report.limit(f"{work}: seconds from the write until the nodes agree", seconds, "s")
    bench.report.limit("an exchange of two nodes that have nothing new", idle, "B")


def restores(bench: Bench) -> None:
    """A restore that changes 100,000 paths: seconds until the other node shows the same."""
    count = bench.choose(100_000, 10_000)
    first = bench.directory / "a"
    _fill(first, count)
    with node(first) as a:
        ask(a, "POST", "/versions/snapshots", {"name": "before"})
    _fill(first, count, turn=1)
    away = found(first)
    with (
        node(first) as a,
        line_to(a) as line,
        copied_node(first, a, away, bench.directory / "b", line.address) as b,
    ):
        began = time.monotonic()
        ask(a, "POST", "/versions/restore", {"name": "before"})
        restored = time.monotonic() - began
        wait_for(lambda: head(b) == head(a), 0.2)
        seconds = time.monotonic() - began
        carried = sum(map(_bytes, line.exchanges))
    bench.report.limit(f"a restore of {count:,} paths, on its node", [restored], "s")
    bench.report.limit(f"a restore of {count:,} paths, until both nodes agree", [seconds], "s")
    bench.report.limit("bytes on the wire for each of these paths", [carried / count], "B")


def writes(bench: Bench) -> None:
    """Writes a second of a node with four peers, which work or are halted, beside one with none."""
    seconds = bench.choose(3.0, 1.0)
    runs = iter(range(1_000))
    with ExitStack() as stack:
        alone = stack.enter_context(node(bench.directory / "alone"))
        first = bench.directory / "a"
        a = stack.enter_context(node(first))
        peers = [stack.enter_context(node(bench.directory / f"p{number}")) for number in range(_PEERS)]
        for peer in peers:
            ask(peer, "POST", "/sync/enter", {"address": a.url(""), "own_address": peer.url("")})
            wait_for(lambda peer=peer: not ask(peer, "GET", "/sync/status")["is_copying"], 0.2)

        def rate(server: Server) -> float:
            return wrk.put(server, "/files/new/", 8, seconds, f"r{next(runs)}").rate

        def rate_beside_halted() -> float:
            pids = [pid for peer in peers for pid in (peer.pid, *processes.children(peer.pid))]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                return rate(a)
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
                wait_for(lambda: len({head(one) for one in (a, *peers)}) == 1, 0.5)

        def rate_beside_working() -> float:
            measured = rate(a)
            wait_for(lambda: len({head(one) for one in (a, *peers)}) == 1, 0.5)
            return measured

        lone, halted, working = [], [], []
        for _ in range(bench.rounds(3)):
            lone.append(rate(alone))
            halted.append(rate_beside_halted())
            working.append(rate_beside_working())
    work = "PUT 1 KiB, 8 connections, a node with 4 peers"
    bench.report.compare(f"{work} that are halted, as on other machines", halted, "1/s", "without", lone, 0.9)
    bench.report.compare(f"{work} on the same processors", working, "1/s", "without peers", lone, 0.9)


def copies(bench: Bench) -> None:
    """A first copy of 2 GiB beside rsync and git clone, and 20 interruptions of it by kills."""
    source = bench.directory / "source"
    size = _material(source, bench.choose(2_048, 128))
    first = bench.directory / "a"
    first.mkdir()
    subprocess.run([cluster_nodes.program("svc"), "load", "-q", "-D", first / "x.svcdb", source], check=True)
    repository = _repository(bench.directory / "git", source)
    with node(first) as a:
        own, rsynced, cloned = [], [], []
        for turn in range(bench.rounds(2)):
            with line_to(a) as line, node(bench.directory / f"b{turn}") as b:
                own.append(size / 1e6 / seconds_of(lambda b=b, line=line: _join(b, line.address)))
                whole = line.received
            target = bench.directory / f"r{turn}"
            rsynced.append(size / 1e6 / seconds_of(partial(_call, "rsync", "-a", f"{source}/", target)))
            target = bench.directory / f"g{turn}"
            cloned.append(
                size / 1e6 / seconds_of(partial(_call, "git", "clone", "-q", f"file://{repository}", target))
            )
        work = f"first copy of {size / 1e6:,.0f} MB"
        bench.report.compare(work, own, "MB/s", "rsync -a of files", rsynced)
        bench.report.compare(work, own, "MB/s", "git clone by file://", cloned)
        with line_to(a) as line:
            _copy_with_interruptions(bench.directory / "c", line, whole)
            twice = (line.received - whole) / _INTERRUPTIONS / 1e6
    bench.report.limit(
        f"{work}: what each of {_INTERRUPTIONS} kills lets travel twice", [twice], "MB", _TWICE_MB
    )


def delays(bench: Bench) -> None:
    """Time from the answer to a PUT until another node shows the file, beside Syncthing."""
    count = bench.choose(100, 20)
    with node(bench.directory / "a") as a, node(bench.directory / "b") as b:
        own = {"address": a.url(""), "own_address": b.url("")}
        ask(b, "POST", "/sync/enter", own)
        wait_for(lambda: not ask(b, "GET", "/sync/status")["is_copying"])
        ours = _delays(count, lambda name: ask_put(a, name), lambda name: _is_there(b, name))
    rows = [
        ("as it is installed", 10.0, max(5, count // 10), 1.0),
        ("that waits 1 s, as svc", 1.0, count, None),
    ]
    for what, wait, number, goal in rows:
        with Pair(bench.directory / f"syncthing-{wait:g}", wait) as pair:
            theirs = _delays(number, pair.write, pair.has)
        for name, of in (("median", statistics.median), ("p99", _p99)):
            work = f"from the acknowledgement until it is visible elsewhere, {name}"
            peer = f"Syncthing {what}"
            bench.report.compare(work, [of(ours)], "ms", peer, [of(theirs)], goal, at_most=True)


def _delays(count: int, write: Callable[[str], None], is_there: Callable[[str], bool]) -> list[float]:
    chance = random.Random(1)
    values = []
    for number in range(count):
        time.sleep(chance.uniform(0.2, 1.2))
        name = f"f{number}"
        write(name)
        began = time.monotonic()
        wait_for(lambda name=name: is_there(name), 0.005)
        values.append((time.monotonic() - began) * 1e3)
    return values


def _p99(values: list[float]) -> float:
    return sorted(values)[max(0, round(len(values) * 0.99) - 1)]


def ask_put(server: Server, name: str) -> None:
    """Stores a small file."""
    ask(server, "PUT", f"/files/{name}", {"x": name})


def _is_there(server: Server, name: str) -> bool:
    with contextlib.suppress(RuntimeError):
        ask(server, "GET", f"/files/{name}")
        return True
    return False


def _bytes(exchange: Exchange) -> float:
    return float(exchange.sent + exchange.received)


def _fill(directory: Path, count: int, turn: int = 0) -> None:
    """Stores so many files of 100 bytes, a thousand in each directory."""
    directory.mkdir(exist_ok=True)
    with Database(directory / "x.svcdb") as database:
        for begin in range(0, count, 10_000):
            with database.transaction() as changes:
                for number in range(begin, min(count, begin + 10_000)):
                    content = (b"%d %d " % (turn, number)).ljust(_SIZE, b".")
                    changes.put((f"d{number // 1_000}", f"f{number}"), content)


def _change(server: Server, turn: int, count: int) -> None:
    chance = random.Random(turn)
    operations = []
    for number in chance.sample(range(count), _TEN):
        content = f"{turn} {number} changed ".ljust(_SIZE, "-")
        operations.append({"op": "put", "path": f"/d{number // 1_000}/f{number}", "content": content})
    ask(server, "POST", "/files/batch", {"operations": operations})


def _join(server: Server, address: str) -> None:
    ask(server, "POST", "/sync/enter", {"address": address})
    wait_for(lambda: not ask(server, "GET", "/sync/status")["is_copying"], 0.1)


def _copy_with_interruptions(directory: Path, line: cluster_nodes.Line, whole: int) -> None:
    for turn in range(_INTERRUPTIONS + 1):
        with contextlib.suppress(ConnectionError), node(directory) as server:
            if turn == 0:
                ask(server, "POST", "/sync/enter", {"address": line.address})
            if turn == _INTERRUPTIONS:
                wait_for(lambda server=server: not ask(server, "GET", "/sync/status")["is_copying"], 0.1)
                return
            goal = whole * (turn + 1) / (_INTERRUPTIONS + 2)
            wait_for(lambda goal=goal: line.received >= goal, 0.002)
            kill(server)


def _material(directory: Path, mebibytes: int) -> int:
    """Half of it in files of 1 MiB, a quarter in files of 32 MiB, a quarter in files of 32 KiB."""
    directory.mkdir()
    sizes = [1 << 20] * (mebibytes // 2) + [32 << 20] * (mebibytes // 128) + [32 << 10] * (mebibytes * 8)
    for number, size in enumerate(sizes):
        place = directory / f"d{number % 50}"
        place.mkdir(exist_ok=True)
        write_random(place / f"f{number}", size + number)
    return sum(size + number for number, size in enumerate(sizes))


def _repository(path: Path, tree: Path) -> Path:
    _call("git", "init", "-q", "--bare", "-b", "main", path)
    for name, value in (("gc.auto", "0"), ("core.bigFileThreshold", "1m")):
        _call("git", "-C", path, "config", name, value)
    git = ("git", f"--git-dir={path}", f"--work-tree={tree}", "-c", "user.name=a", "-c", "user.email=a@b")
    _call(*git, "add", "-A")
    _call(*git, "commit", "-q", "-m", "all")
    return path


def _call(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, timeout=3_000)
