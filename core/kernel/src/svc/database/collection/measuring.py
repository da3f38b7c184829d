"""Where a collection spends time and memory: shown if ``SVC_GC_TIMING`` or ``SVC_GC_MEM_PROFILE`` is set."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Measure"]

_SAMPLE_SECONDS = 1.0


class Measure:
    """Prints to standard error how long each phase took, and what memory the process had; or nothing."""

    def __init__(self) -> None:
        self._times = bool(os.environ.get("SVC_GC_TIMING"))
        self._memory = bool(os.environ.get("SVC_GC_MEM_PROFILE"))
        self._began = self._sampled = time.monotonic()
        self._phase = "begin"

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures a phase; it may be left by an exception."""
        began = time.monotonic()
        self._phase = name
        try:
            yield
        finally:
            if self._times:
                _say(f"gc: {name} took {time.monotonic() - began:.3f} s")
            if self._memory:
                self._say_memory(0)

    def sample(self, marked: int) -> None:
        """Samples the memory, once a second at most."""
        if self._memory and time.monotonic() - self._sampled >= _SAMPLE_SECONDS:
            self._say_memory(marked)

    def end(self) -> None:
        """Prints how long all took."""
        if self._times:
            _say(f"gc: in all {time.monotonic() - self._began:.3f} s")

    def _say_memory(self, marked: int) -> None:
        self._sampled = time.monotonic()
        own, mapped = _memory()
        counted = f", {marked:,} objects marked" if marked else ""
        _say(
            f"gc: {self._phase}: {own / 1048576:.1f} MiB of memory, "
            f"{mapped / 1048576:.1f} MiB of mapped files{counted}"
        )


def _memory() -> tuple[int, int]:
    """Bytes of the process's own memory, and of files that it has mapped and the system may take back."""
    found = {"RssAnon": 0, "RssFile": 0}
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, rest = line.partition(":")
                if name in found:
                    found[name] = int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return found["RssAnon"], found["RssFile"]


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
