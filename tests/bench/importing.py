"""Bulk import of many small files: from memory beside git fast-import, from disk beside others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from measurement import TREE_FILES, Bench, kibibyte, tree_of_small_files
from report import interleave, seconds_of
from servers import program

from svc.database import Database


def from_memory(bench: Bench) -> None:
    """100,000 x 1 KiB from memory into a new database, beside git fast-import."""
    count = _count(bench)
    contents = [kibibyte(number) for number in range(count)]
    stream = _stream(bench.directory / "stream", contents)
    runs = iter(range(100))

    def ours() -> None:
        with Database(bench.directory / f"import-{next(runs)}.svcdb") as database:
            for begin in range(0, count, 10_000):
                with database.transaction() as transaction:
                    for number in range(begin, begin + 10_000):
                        transaction.put((f"d{number % 100}", f"f{number}"), contents[number])
            assert database.at().totals().files == count

    mine, theirs = interleave(
        bench.rounds(2),
        lambda: count / seconds_of(ours),
        lambda: count / seconds_of(lambda: _fast_import(bench.directory / f"git-{next(runs)}", stream)),
    )
    bench.report.compare(f"bulk import of {count:,} x 1 KiB", mine, "files/s", "git fast-import", theirs, 10)


def from_disk(bench: Bench) -> None:
    """svc load of a tree of 50,000 x 1 KiB, beside git add, restic and borg, each into a new store."""
    tree, count = tree_of_small_files(bench), TREE_FILES
    stores = iter(bench.directory / f"store-{number}" for number in range(100))
    environment = environment_of_peers(bench.directory)

    def timed(*commands: tuple[object, ...]) -> float:
        """Files a second of the last of some commands."""
        *before, measured = ([str(word) for word in command] for command in commands)

        def call(words: list[str]) -> None:
            subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL, timeout=300)

        for words in before:
            call(words)
        return count / seconds_of(lambda: call(measured))

    def load() -> float:
        return timed((program("svc"), "load", "-q", "-D", f"{next(stores)}.svcdb", tree))

    def add() -> float:
        store = next(stores)
        command = ("git", f"--git-dir={store}", f"--work-tree={tree}", "add", "-A")
        return timed(("git", "init", "-q", "--bare", store), command)

    def restic() -> float:
        store = next(stores)
        command = ("restic", "-q", "--no-cache", "backup", "-r", store, tree)
        return timed(("restic", "-q", "init", "-r", store), command)

    def borg() -> float:
        store = next(stores)
        return timed(("borg", "init", "-e", "none", store), ("borg", "create", f"{store}::one", tree))

    ours, *others = interleave(bench.rounds(2), load, add, restic, borg)
    for name, rates in zip(("git add", "restic backup", "borg create"), others, strict=True):
        work = f"svc load of a directory of {count:,} x 1 KiB"
        bench.report.compare(work, ours, "files/s", name, rates)


def _count(bench: Bench) -> int:
    return bench.choose(100_000, 20_000)


def _stream(path: Path, contents: list[bytes]) -> Path:
    """Writes the input of git fast-import."""
    with open(path, "wb") as file:
        file.write(b"commit refs/heads/main\ncommitter a <a@b> 1 +0000\ndata 1\nx\n")
        for number, content in enumerate(contents):
            header = b"M 644 inline d%d/f%d\ndata %d\n" % (number % 100, number, len(content))
            file.write(header + content + b"\n")
    return path


def _fast_import(repository: Path, stream: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
    with open(stream, "rb") as source:
        command = ["git", "-C", str(repository), "fast-import", "--quiet"]
        subprocess.run(command, stdin=source, check=True)


def environment_of_peers(home: Path) -> dict[str, str]:
    """Variables with which restic and borg ask nothing and leave the caller's own settings alone."""
    return {
        **os.environ,
        "HOME": str(home),
        "RESTIC_PASSWORD": "bench",
        "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
    }
