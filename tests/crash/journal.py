"""The journal of one writer: what was acknowledged to it, and what was under way when it was cut off.

A writer owns a directory. What it begins and what is acknowledged flows in; after a crash the files that are
found flow in, and an assertion fails unless they are what was acknowledged, or that and the one change
that was under way, whole. That is durability and atomicity in one comparison. Nothing of svc is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blake3 import blake3

__all__ = ["Change", "Journal", "digest"]

Change = Mapping[str, str | None]
"""Path to the digest of its new content, or to None where it is removed; all of it at once."""


def digest(content: bytes) -> str:
    """Names a content."""
    return blake3(content).hexdigest()


@dataclass(slots=True)
class Journal:
    """What one writer knows of its directory.

    Attributes:
        name: the writer, and its directory.
        acknowledged: path to digest, after the last acknowledged change.
        under_way: the change that was begun and not answered.
        answers: number of acknowledged changes.
        version: root hash in hex that the last acknowledgement named.
    """

    name: str
    acknowledged: dict[str, str] = field(default_factory=dict)
    under_way: dict[str, str | None] | None = None
    answers: int = 0
    version: str | None = None

    def begin(self, change: Change) -> None:
        """Notes what is about to be asked for."""
        assert self.under_way is None, "a change is under way"
        self.under_way = dict(change)

    def acknowledge(self, version: str | None = None) -> None:
        """Notes that the change under way was acknowledged."""
        assert self.under_way is not None
        self.acknowledged = applied(self.acknowledged, self.under_way)
        self.under_way = None
        self.answers += 1
        self.version = version

    def refuse(self) -> None:
        """Notes that the change under way was refused: nothing of it may ever be seen."""
        self.under_way = None

    def possible(self) -> list[dict[str, str]]:
        """Returns what may be found now: one state, or two while the outcome of a change is unknown."""
        states = [self.acknowledged]
        if self.under_way is not None:
            states.append(applied(self.acknowledged, self.under_way))
        return states

    def check(self, found: Mapping[str, str]) -> None:
        """Fails unless the files that were found (path to digest) are what may be found."""
        if found in self.possible():
            return
        expected = self.acknowledged
        changed = set(self.under_way or ())
        lost = {path: found.get(path) for path in expected if found.get(path) != expected[path]}
        extra = {path for path in found if path not in expected}
        raise AssertionError(
            f"writer {self.name}, {self.answers} answers: lost or altered {_shown(set(lost) - changed)}, "
            f"never written or removed before {_shown(extra - changed)}, "
            f"torn out of the change under way {_shown((set(lost) | extra) & changed)} of {_shown(changed)}"
        )

    def settle(self, found: Mapping[str, str]) -> None:
        """Checks, and takes what was found for what is there."""
        self.check(found)
        self.acknowledged = dict(found)
        self.under_way = None


def applied(state: Mapping[str, str], change: Change) -> dict[str, str]:
    """Returns the state after a change."""
    result = dict(state)
    for path, content in change.items():
        if content is None:
            result.pop(path, None)
        else:
            result[path] = content
    return result


def _shown(paths: set[str]) -> str:
    listed = sorted(paths)
    return f"{listed[:5]}{'...' if len(listed) > 5 else ''}" if listed else "nothing"
