"""What a run did, and what it left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["Report"]

_DONE = (
    ("fetched", "fetched"),
    ("stored", "stored"),
    ("moved_there", "moved on the server"),
    ("deleted_here", "deleted here"),
    ("deleted_there", "deleted on the server"),
)


class Report:
    """Counts what was done, and names what was not; ``say`` gets a line for people."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.done: Counter[str] = Counter()
        self.bytes_fetched = 0
        self.bytes_stored = 0
        self.conflicts: list[tuple[str, str]] = []
        self.planned: list[tuple[str, str]] = []
        self.left: dict[str, str] = {}
        self.needs_another_pass = False
        self._say = say

    def begin_pass(self) -> None:
        """Another look at everything begins: what was left may not be so any more."""
        self.left.clear()
        self.needs_another_pass = False

    def leave(self, path: str, reason: str, again: bool = False) -> None:
        """Notes that a path is left as it is; ``again``: another look may find it otherwise."""
        self.left[path] = reason
        self.needs_another_pass |= again

    def note_conflict(self, path: str, kept_as: str) -> None:
        """Notes that both sides had changed a path, and says so at once."""
        self.conflicts.append((path, kept_as))
        self.needs_another_pass = True
        self._say(f"conflict: {path} has changed here and on the server; yours is kept as {kept_as}")

    def note_hidden(self, path: str) -> None:
        """Says that a path was stored and the server does not show it."""
        self._say(f"not shown: {path} was stored, but the server does not show it; it stays here")

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was done, and nothing is left to do."""
        return not (any(self.done.values()) or self.conflicts or self.left)

    def plan(self, action: str, path: str) -> None:
        """Notes what a run would do."""
        self.planned.append((action, path))
        self._say(f"would {action}: {path}")

    def as_json(self) -> dict[str, Any]:
        """Returns the report for scripts."""
        return {
            **{name: self.done[name] for name, _ in _DONE},
            "bytes_fetched": self.bytes_fetched,
            "bytes_stored": self.bytes_stored,
            "conflicts": [{"path": path, "kept_as": kept_as} for path, kept_as in self.conflicts],
            "planned": [{"action": action, "path": path} for action, path in self.planned],
            "left": [{"path": path, "reason": reason} for path, reason in self.left.items()],
        }

    def lines(self) -> list[str]:
        """Returns the report for people."""
        counts = ", ".join(f"{self.done[name]} {words}" for name, words in _DONE if self.done[name])
        return [
            *(f"left: {path}: {reason}" for path, reason in self.left.items()),
            *([counts or "nothing to do"] if not self.planned else []),
        ]
