"""Bulk import of many small files, against git fast-import of the same."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from report import Report, Row, interleave

from svc.database import Database

_COUNT = 100_000


def run(report: Report, directory: Path) -> None:
    """Measures files per second of 100,000 files of 1 KiB."""
    contents = [b"%08d" % number + os.urandom(1016) for number in range(_COUNT)]
    runs = iter(range(100))

    def ours() -> float:
        start = time.perf_counter()
        with Database(directory / f"import-{next(runs)}.svcdb") as database:
            for begin in range(0, _COUNT, 10_000):
                with database.transaction() as transaction:
                    for number in range(begin, begin + 10_000):
                        transaction.put((f"d{number % 100}", f"f{number}"), contents[number])
        return _COUNT / (time.perf_counter() - start)

    def git() -> float:
        repository = directory / f"git-{next(runs)}"
        subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
        start = time.perf_counter()
        with subprocess.Popen(
            ["git", "-C", str(repository), "fast-import", "--quiet"], stdin=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            process.stdin.write(b"commit refs/heads/main\ncommitter a <a@b> 1 +0000\ndata 1\nx\n")
            for number, content in enumerate(contents):
                header = b"M 644 inline d%d/f%d\ndata %d\n" % (number % 100, number, len(content))
                process.stdin.write(header + content + b"\n")
        return _COUNT / (time.perf_counter() - start)

    mine, theirs = interleave(ours, git, 2)
    report.add(
        Row("bulk import of 100k x 1 KiB", mine, "files/s", "git fast-import", theirs, mine / theirs, 10)
    )
