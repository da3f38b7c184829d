"""Lets an environment use the bytecode of another one: ``shared_bytecode.py ENVIRONMENT OTHER``.

Both have the same versions of what they share, from ``uv.lock``. Without this, each environment compiles all
that it imports anew, which takes seconds of the processor. What is not installed is missing as before: only
folders ``__pycache__`` are shared, and Python reads those of a module when it has found the module.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

CACHE = "__pycache__"


def share(packages: Path, others: Path) -> None:
    """Makes the caches of a folder of packages links to those of another one."""
    for directory, folders, files in os.walk(packages):
        if CACHE in folders:
            folders.remove(CACHE)
        here = Path(directory)
        there = others / here.relative_to(packages)
        if not there.is_dir() or not any(name.endswith(".py") for name in files) or (here / CACHE).exists():
            continue
        (there / CACHE).mkdir(exist_ok=True)
        (here / CACHE).symlink_to(there / CACHE)


def main() -> None:
    environment, other = (next(Path(name).glob("lib/python*/site-packages")) for name in sys.argv[1:3])
    share(environment, other)


if __name__ == "__main__":
    main()
