"""Makes sure that the programs which the tests drive as real clients are installed.

The end-to-end and compatibility tests use curl, git, openssl, nginx, prometheus, redis and chromium of
Debian, the crash tests libfiu and mkfs, those of retention libfaketime. As root on a Debian system what is
missing is installed with apt-get; anywhere else a message says what to install, and the exit code is 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

PROGRAMS = {
    "curl": ("curl",),
    "git": ("git",),
    "openssl": ("openssl",),
    "fiu-utils": ("fiu-run",),
    "e2fsprogs": ("mkfs.ext4",),
    "faketime": ("faketime",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "nginx-light": ("nginx",),
    "prometheus": ("promtool",),
    "redis-server": ("redis-server",),
}
"""Debian package, and the names that its program may have."""

BENCH_PROGRAMS = {
    "curl": ("curl",),
    "git": ("git",),
    "nginx-light": ("nginx",),
    "wrk": ("wrk",),
    "nats-server": ("nats-server",),
    "restic": ("restic",),
    "borgbackup": ("borg",),
    "rsync": ("rsync",),
    "syncthing": ("syncthing",),
}
"""The same for the benchmarks, which ``--bench`` asks for instead."""


OPENAPI_PROGRAMS = {"nodejs": ("node",), "npm": ("npm",)}
"""The same for the TypeScript client, which ``--openapi`` asks for instead."""


def missing_packages(programs: Mapping[str, Sequence[str]] = PROGRAMS) -> list[str]:
    """Returns the Debian packages none of whose programs is on the search path."""
    return [package for package, names in programs.items() if not any(map(shutil.which, names))]


def install(packages: Sequence[str]) -> None:
    """Installs Debian packages without asking anything.

    Raises:
        subprocess.CalledProcessError: apt-get failed; its output says why.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        subprocess.run(
            ["apt-get", "--quiet", "--quiet", *arguments],
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )


def main() -> int:
    """Installs what is missing, or says what to install; returns the exit code."""
    asked = sys.argv[1:]
    chosen = {"--bench": BENCH_PROGRAMS, "--openapi": OPENAPI_PROGRAMS}
    packages = missing_packages(chosen[asked[0]] if asked else PROGRAMS)
    if not packages:
        return 0
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing for the tests: {', '.join(packages)}")
        install(packages)
        return 0
    print(
        f"The tests drive these programs, which are not installed: {', '.join(packages)}.\n"
        f"On Debian or Ubuntu: sudo apt-get install {' '.join(packages)}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
