"""Runs all tests, two runs of pytest at a time: much of a test's time is waiting for servers and disks.

Each run takes the next part of the list, the longest first, so that both are busy to the end. Where memory
allows it, the databases of most tests are made there: they wait for no disk. What is tested on a
disk is named in ``ON_DISK``.

With a folder it runs the tests of that; other arguments are given to one run of pytest as they are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = 2
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 8 * 1024**3
LONGEST_FIRST = (
    "core/server/tests",
    "tests/e2e",
    "core/kernel/tests",
    "tests/attack",
    "tests/crash",
    "tests/versions_model",
    "core/worker/tests",
)
ON_DISK = ("tests/attack", "tests/crash", "tests/compat", "tests/realdata")


def all_parts() -> list[str]:
    """Returns the folders of tests of the core and of the whole, in the order in which to run them."""
    found = [*ROOT.glob("core/*/tests"), *(ROOT / "tests").iterdir()]
    names = [str(path.relative_to(ROOT)) for path in sorted(found) if path.is_dir() and _holds_tests(path)]
    order = {name: place for place, name in enumerate(LONGEST_FIRST)}
    return sorted(names, key=lambda name: order.get(name, len(order)))


def parts_of(folder: Path) -> list[str]:
    """Returns the folders in a folder, and its files as one part for each run."""
    found = [path for path in sorted(folder.iterdir()) if _holds_tests(path)]
    files = [str(path.relative_to(ROOT)) for path in found if path.is_file()]
    shares = [" ".join(files[start::RUNS]) for start in range(RUNS)]
    return [*(str(path.relative_to(ROOT)) for path in found if path.is_dir()), *filter(None, shares)]


def _holds_tests(path: Path) -> bool:
    return path.match("test_*.py") if path.is_file() else any(path.glob("**/test_*.py"))


class Runner:
    """Runs of pytest, each for one part.

    Args:
        waiting: the parts.
        memory: a directory in memory; None where there is none.
    """

    def __init__(self, waiting: list[str], memory: Path | None) -> None:
        self._waiting = deque(waiting)
        self._memory = memory
        self._printing = threading.Lock()
        self.code = 0

    def work(self) -> None:
        """Takes parts until there are none."""
        while self._waiting:
            try:
                part = self._waiting.popleft()
            except IndexError:
                return
            self._run(part)

    def _run(self, part: str) -> None:
        began = time.monotonic()
        command = list(PYTEST)
        if self._memory is not None and not part.startswith(ON_DISK):
            command.append(f"--basetemp={tempfile.mkdtemp(dir=self._memory)}/made")
        done = subprocess.run(
            [*command, *part.split()], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        with self._printing:
            self.code = self.code or done.returncode
            sys.stdout.write(f"=== {part}: {time.monotonic() - began:.0f} s\n")
            sys.stdout.flush()
            sys.stdout.buffer.write(done.stdout)
            sys.stdout.flush()


def main() -> int:
    given = sys.argv[1:]
    folder = ROOT / given[0] if len(given) == 1 else None
    if given and (folder is None or not folder.is_dir()):
        return subprocess.run([*PYTEST, *given], cwd=ROOT, check=False).returncode
    memory = None
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_NEEDED:
        memory = Path(tempfile.mkdtemp(prefix="svc-tests-", dir=MEMORY))
    runner = Runner(all_parts() if folder is None else parts_of(folder), memory)
    threads = [threading.Thread(target=runner.work) for _ in range(RUNS)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        if memory is not None:
            shutil.rmtree(memory, ignore_errors=True)
    return runner.code


if __name__ == "__main__":
    sys.exit(main())
