"""Runs all tests, two runs for each processor: some of a test's time is waiting for servers and disks.

Each run takes the next part of the list, the longest first, so that all are busy to the end. For each part it
prints how long it took, and how long processors worked for it. Where memory allows it, the databases of most
tests are made there: they wait for no disk. What is tested on a disk is named in ``ON_DISK``.

The tests of a plugin run in an environment of their own, with nothing but the kernel, the plugin and what it
requires installed: what it imports and does not require is missing there.

With folders it runs the tests of those (``plugins/files``); other arguments are given to one run of pytest as
they are.
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
RUNS = min(2 * (os.cpu_count() or 1), 8)
PYTEST = ("-m", "pytest", "-p", "no:cacheprovider")
MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 8 * 1024**3
SPLIT = ("tests/e2e",)
"""Each folder in these is a part of its own; the files beside those folders are one."""
BESIDE = "test_*.py"

LONGEST_FIRST = (
    "core/kernel/tests",
    "tests/attack",
    f"tests/e2e/{BESIDE}",
    "tests/crash",
    "core/server/tests",
    "tests/plugins",
    "plugins/query",
    "plugins/tasks",
    "plugins/files",
    "tests/e2e/identity",
    "core/maintenance/tests",
    "tests/realdata",
    "tests/documentation",
    "tests/e2e/versions",
    "tests/monitoring",
    "core/worker/tests",
    "tests/e2e/backup",
    "tests/query_model",
    "plugins/index-fulltext",
    "tests/versions_model",
    "tests/layering",
    "plugins/backup",
    "plugins/task-backup",
    "plugins/task-reindex",
    "plugins/metrics",
    "plugins/users",
    "plugins/versions",
    "plugins/history",
    "plugins/events-webhook",
    "plugins/events",
    "plugins/events-sse",
    "tests/fuzz",
)
TESTED_WITH = {
    "query": (
        "index-exact",
        "index-fulltext",
        "index-phonetic",
        "index-trigram",
        "parsers",
        "files",
        "users",
        "events",
        "metrics",
        "portal",
    ),
    "tasks": ("files", "events", "metrics", "portal", "task-gc", "versions"),
    "events": ("metrics", "files", "query", "sharing", "task-gc", "tasks", "users", "versions"),
    "events-sse": ("files", "portal", "query", "sharing", "task-gc", "tasks", "users", "versions"),
    "auth-magic-link": ("portal",),
    "auth-self": ("portal",),
    "backup": ("portal",),
    "docs": ("portal",),
    "files": ("portal", "versions"),
    "history": ("client", "portal"),
    "metrics": ("client", "events", "events-sse", "files", "portal", "query", "tasks", "users", "versions"),
    "events-webhook": ("files",),
    "portal": ("metrics",),
    "sharing": ("events", "files", "portal"),
    "sync": ("auth-self", "events", "metrics", "portal", "sync-http", "versions"),
    "sync-http": ("auth-disabled", "files", "versions", "metrics"),
    "task-gc": ("events", "portal"),
    "task-verify": ("portal",),
    "users": ("client", "events", "metrics", "portal"),
    "versions": ("events", "metrics", "portal"),
}
"""A driver is tested with what extends it, an extension with the driver that it can do without, and by files
that are put; commands with the client that a server needs."""

ENVIRONMENTS = Path(os.environ.get("TOX_ENV_DIR", ROOT / ".tox" / "py")) / "alone"
ON_DISK = ("tests/attack", "tests/crash", "tests/compat", "tests/realdata")


def all_parts() -> list[str]:
    """Returns the plugins, and the folders of tests of the core and of the whole, the longest first."""
    found = [*ROOT.glob("core/*/tests"), *ROOT.glob("plugins/*"), *(ROOT / "tests").iterdir()]
    found += [path for name in SPLIT for path in (ROOT / name).iterdir()]
    names = [str(path.relative_to(ROOT)) for path in sorted(found) if path.is_dir() and _holds_tests(path)]
    names = [f"{name}/{BESIDE}" if name in SPLIT else name for name in names]
    order = {name: place for place, name in enumerate(LONGEST_FIRST)}
    return sorted(names, key=lambda name: order.get(name, len(order)))


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
        python = sys.executable
        commands = []
        if part.startswith("plugins/"):
            commands, python = _alone(part)
        command = [python, *PYTEST, *_places(part)]
        if self._memory is not None and not part.startswith(ON_DISK):
            command.append(f"--basetemp={tempfile.mkdtemp(dir=self._memory)}/made")
        output, code, worked = b"", 0, 0.0
        for one, environment in [*commands, (command, dict(os.environ))]:
            printed, code, seconds = _finish(one, environment)
            output, worked = output + printed, worked + seconds
            if code:
                break
        with self._printing:
            self.code = self.code or code
            took = time.monotonic() - began
            sys.stdout.write(f"=== {part}: {took:.0f} s, {worked:.0f} s of processors\n")
            sys.stdout.flush()
            sys.stdout.buffer.write(output)
            sys.stdout.flush()


def _places(part: str) -> list[str]:
    """Returns what pytest is to run for a part."""
    if not part.endswith(BESIDE):
        return [part]
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(part))


def _finish(command: list[str], environment: dict[str, str]) -> tuple[bytes, int, float]:
    """Runs a command to its end; returns what it printed, its exit code and its seconds of processors."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    with process.stdout as stream:
        printed = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return printed, process.returncode, usage.ru_utime + usage.ru_stime


def _alone(part: str) -> tuple[list[tuple[list[str], dict[str, str]]], str]:
    """Returns what makes an environment for one plugin's tests, and the interpreter of it."""
    plugin = Path(part).parts[1]
    directory = ENVIRONMENTS / plugin
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(directory)}
    environment.pop("VIRTUAL_ENV", None)
    sync = ["uv", "sync", "--quiet", "--locked", "--python", sys.executable]
    packages = [f"--package=svc-{name}" for name in (plugin, *TESTED_WITH.get(plugin, ()))]
    commands = [
        [*sync, "--only-group", "unit"],
        [*sync, "--inexact", "--no-default-groups", *packages],
        [sys.executable, str(Path(__file__).with_name("shared_bytecode.py")), str(directory), sys.prefix],
    ]
    return [(command, environment) for command in commands], str(directory / "bin" / "python")


def main() -> int:
    given = [name.rstrip("/") for name in sys.argv[1:]]
    if not all((ROOT / name).is_dir() for name in given):
        return subprocess.run([sys.executable, *PYTEST, *sys.argv[1:]], cwd=ROOT, check=False).returncode
    memory = None
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_NEEDED:
        memory = Path(tempfile.mkdtemp(prefix="svc-tests-", dir=MEMORY))
    runner = Runner(given or all_parts(), memory)
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
