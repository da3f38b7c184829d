"""How long the tests of one kind run, and from which seed: two environment variables.

``SVC_TEST_<KIND>_SCALE`` multiplies how much they do (1 by default; environments of tox set more);
``SVC_TEST_<KIND>_SEED`` repeats what a failure printed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["Extent", "directory_in_memory"]

_MEMORY = Path("/dev/shm")


class Extent:
    """The extent of one kind of tests.

    Args:
        kind: its name in the variables.

    Attributes:
        scale: the factor.
        seed: the seed.
    """

    def __init__(self, kind: str) -> None:
        self.scale = float(os.environ.get(f"SVC_TEST_{kind}_SCALE", "1"))
        self.seed = int(os.environ.get(f"SVC_TEST_{kind}_SEED", "1"))

    def scaled(self, count: float, *, most: int | None = None) -> int:
        """Returns how many of something to do: ``count`` in a short run, at least one."""
        number = max(1, round(count * self.scale))
        return number if most is None else min(number, most)

    def lift_time_limits(self, items: list[pytest.Item], folder: Path, seconds: int) -> None:
        """In a long run no test of a folder has the time limit of a short one."""
        for item in items:
            if (
                self.scale > 1
                and item.path.is_relative_to(folder)
                and item.get_closest_marker("timeout") is None
            ):
                item.add_marker(pytest.mark.timeout(seconds))


@contextmanager
def directory_in_memory(otherwise: Path, prefix: str) -> Iterator[Path]:
    """Gives a directory in memory, which is removed afterwards; ``otherwise`` where there is none."""
    if not os.access(_MEMORY, os.W_OK):
        yield otherwise
        return
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=_MEMORY))
    yield directory
    shutil.rmtree(directory)
