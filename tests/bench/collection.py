"""Garbage collection beside git gc, restic prune and borg compact; what it costs others, and its memory."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from measurement import Bench, kibibyte, small_files, write_random
from report import interleave, seconds_of
from servers import program

from svc.database import Database, collect

_SMALL_FILES = 20_000
_LARGE = 1 << 25
_ENTRIES = 10_000_000
_LIMIT_MIB = 200


def collections(bench: Bench) -> None:
    """A collection after half of all small and large files were replaced, beside git, restic and borg."""
    tree = small_files(bench.directory / "tree", bench.choose(_SMALL_FILES, 2_000))
    large = bench.choose(8, 2)
    for number in range(large):
        write_random(tree / f"large{number}", _LARGE)
    stores = [bench.directory / name for name in ("svc", "git", "restic", "borg")]
    environment = _environment(bench.directory)
    _first(stores, tree, environment)
    for number in range(0, bench.choose(_SMALL_FILES, 2_000), 2):
        (tree / f"d{number % 100}" / f"f{number}").write_bytes(kibibyte(number + 10_000_000))
    for number in range(large // 2):
        write_random(tree / f"large{number}", _LARGE)
    _second(stores, tree, environment)

    live: list[float] = []
    swept: list[float] = []

    def ours() -> float:
        copy = _copied(stores[0] / "x.svcdb", bench.directory / "copy.svcdb")
        with Database(copy) as database:
            database.head()
            times: dict[str, tuple[float, float]] = {}

            def note(phase: str, _done: int, _total: int) -> None:
                times[phase] = time.perf_counter(), time.process_time()

            began, worked = time.perf_counter(), time.process_time()
            report = collect(database, upload_hours=0, progress=note)
            ended = time.perf_counter()
            live.append(report.live_entries / (times["mark"][1] - worked))
            sweep = ended - times["scan"][0]
            swept.append(report.reclaimed_bytes / 1e9 / sweep)
        return ended - began

    def git() -> float:
        command = ("git", "-C", stores[1], "gc", "-q", "--prune=now")
        return seconds_of(partial(_call, environment, *command))

    def restic() -> float:
        command = ("restic", "-q", "--no-cache", "-r", stores[2], "forget", "--keep-last", "1", "--prune")
        return seconds_of(partial(_call, environment, *command))

    def borg() -> float:
        def work() -> None:
            _call(environment, "borg", "delete", f"{stores[3]}::one")
            _call(environment, "borg", "compact", "--threshold", "0", stores[3])

        return seconds_of(work)

    # Once: what is collected is gone, and the stores of the others do not like to be copied.
    mine, *others = interleave(1, ours, git, restic, borg)
    for peer, theirs in zip(("git gc", "restic forget --prune", "borg delete, compact"), others, strict=True):
        bench.report.compare("a collection", mine, "s", peer, theirs)
    bench.report.limit("marking, a second of the processor", live, "objects")
    bench.report.limit("plan and sweep of what is not", swept, "GB/s")
    _slow_down(bench, stores[0] / "x.svcdb")
    _memory(bench)


def _first(stores: list[Path], tree: Path, environment: dict[str, str]) -> None:
    svc, git, restic, borg = stores
    svc.mkdir()
    _call(environment, program("svc"), "load", "-q", "-D", svc / "x.svcdb", tree)
    _call(environment, "git", "init", "-q", "--bare", git)
    _commit(git, tree, environment)
    _call(environment, "restic", "-q", "init", "-r", restic)
    _call(environment, "restic", "-q", "--no-cache", "backup", "-r", restic, tree)
    _call(environment, "borg", "init", "-e", "none", borg)
    _call(environment, "borg", "create", f"{borg}::one", tree)


def _second(stores: list[Path], tree: Path, environment: dict[str, str]) -> None:
    svc, git, restic, borg = stores
    _call(environment, program("svc"), "load", "-q", "--checksum", "-D", svc / "x.svcdb", tree)
    _commit(git, tree, environment)
    _call(environment, "restic", "-q", "--no-cache", "backup", "-r", restic, tree)
    _call(environment, "borg", "create", f"{borg}::two", tree)


def _commit(git: Path, tree: Path, environment: dict[str, str]) -> None:
    """Makes the only commit of a branch: what was there before is garbage then."""
    base = ("git", "--git-dir", git, "--work-tree", tree)
    _call(environment, *base, "add", "-A", ".")
    written = subprocess.run(
        [*map(str, base), "write-tree"], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    made = subprocess.run(
        [*map(str, base), "commit-tree", "-m", "state", written.stdout.strip()],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    _call(environment, *base, "update-ref", "refs/heads/main", made.stdout.strip())


def _slow_down(bench: Bench, source: Path) -> None:
    """Writes and reads of one thread, alone and beside a collection in another process."""
    copy = _copied(source, bench.directory / "busy.svcdb")
    with Database(copy) as database:
        names = [path for path, _ in database.at().walk(files_only=True)][:2000]

        def rates(seconds: float, beside: bool) -> tuple[float, float, float]:
            gc = None
            if beside:
                code = "import sys; from svc.database import Database, collect\n"
                code += "with Database(sys.argv[1]) as d: collect(d, upload_hours=0)"
                gc = subprocess.Popen([sys.executable, "-c", code, str(copy)])
            chance = random.Random(1)
            puts: list[float] = []
            gets: list[float] = []
            deadline = time.perf_counter() + seconds
            while time.perf_counter() < deadline and (gc is None or gc.poll() is None):
                began = time.perf_counter()
                with database.transaction() as transaction:
                    transaction.put(("put", str(chance.randrange(1000))), chance.randbytes(1024))
                puts.append(time.perf_counter() - began)
                began = time.perf_counter()
                for _ in range(20):
                    version = database.at()
                    entry = version.get(names[chance.randrange(len(names))])
                    if entry is not None:
                        version.read_all(entry)
                gets.append((time.perf_counter() - began) / 20)
            if gc is not None:
                gc.wait()
            return statistics.median(puts) * 1e3, max(puts) * 1e3, statistics.median(gets) * 1e6

        alone = rates(2, beside=False)
        during = rates(30, beside=True)
    for at, (what, unit) in enumerate(
        (("PUT of 1 KiB, median", "ms"), ("PUT of 1 KiB, slowest", "ms"), ("GET of 1 KiB, median", "µs"))
    ):
        bench.report.compare(f"{what}, beside a collection", [during[at]], unit, "alone", [alone[at]])


def _memory(bench: Bench) -> None:
    """What marks, dead places and a plan of ten million records take, in a process of its own."""
    entries = bench.choose(_ENTRIES, 1_000_000)
    answered = subprocess.run(
        [sys.executable, __file__, str(entries)], check=True, stdout=subprocess.PIPE, text=True
    )
    used = float(answered.stdout) / 1048576
    work = f"memory of a collection's maps and plan for {entries:,} records"
    bench.report.limit(work, [used], "MiB", _LIMIT_MIB)


def _fill(entries: int) -> int:
    """Marks every second of so many records of about 4 KiB live, finds the others dead, and plans their runs.

    Returns:
        Bytes of the process's own memory at the end.
    """
    from svc.database.collection.marking import BitMap64
    from svc.database.collection.plan import Plan

    chance = random.Random(1)
    live, dead, plan = BitMap64(), BitMap64(), Plan()
    offset = 128
    for _ in range(entries // 20_000):
        positions: tuple[list[int], list[int]] = ([], [])
        for number in range(20_000):
            size = chance.randrange(80, 8000) & ~7
            positions[number & 1].append(offset >> 3)
            if number & 1:
                plan.add(offset, offset + size)
            offset += size
        live.update(positions[0])
        dead.update(positions[1])
    encoded = plan.encode(1)
    assert len(live) + len(dead) == entries // 20_000 * 20_000
    assert encoded
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))


def _copied(source: Path, target: Path) -> Path:
    shutil.rmtree(f"{target}.d", ignore_errors=True)
    subprocess.run(["cp", "--sparse=always", source, target], check=True)
    shutil.copytree(f"{source}.d", f"{target}.d")
    return target


def _environment(directory: Path) -> dict[str, str]:
    """Variables with which restic, borg and git ask nothing and leave the caller's own settings alone."""
    return {
        **os.environ,
        "HOME": str(directory),
        "RESTIC_PASSWORD": "x",
        "BORG_BASE_DIR": str(directory),
        "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes",
        "GIT_AUTHOR_NAME": "x",
        "GIT_AUTHOR_EMAIL": "x@example.org",
        "GIT_COMMITTER_NAME": "x",
        "GIT_COMMITTER_EMAIL": "x@example.org",
    }


def _call(environment: dict[str, str], *command: str | Path) -> None:
    subprocess.run([str(word) for word in command], env=environment, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    print(_fill(int(sys.argv[1])))
