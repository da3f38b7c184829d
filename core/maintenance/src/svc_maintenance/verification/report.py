"""What a verification found, as values."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

__all__ = ["SYSTEM", "Damage", "Held", "VerifyReport", "shown_versions"]

SYSTEM = "system"
"""Stands for the system tree where the name of a ref stands for another one."""

_SHOWN = 4


class Held(Struct, frozen=True):
    """Versions that hold something: those of one tree from one commit to another.

    ``ref`` is ``HEAD`` or a name such as ``snapshots/a``; ``is_present``: the tree is as ``last`` left it.
    """

    ref: str
    first: int
    last: int
    is_present: bool

    def __str__(self) -> str:
        commits = f"commit {self.first}" if self.first == self.last else f"commits {self.first}-{self.last}"
        return f"{self.ref} ({commits})" if self.is_present else f"{commits} of {self.ref}"


class Damage(Struct, frozen=True):
    """One thing that is wrong: a sentence, the object's hash in hex, and where it lies in the log, if known.

    ``path`` is None when it belongs to no path. Else ``version`` is the root hash in hex of the latest
    version that has the path, and ``held`` are all of them.
    """

    message: str
    path: str | None = None
    version: str | None = None
    hash: str | None = None
    offset: int | None = None
    held: tuple[Held, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether HEAD or a named version has it now."""
        return any(one.is_present and one.ref != SYSTEM for one in self.held)


class VerifyReport(Struct):
    """What a verification found.

    Attributes:
        records: number of records that were read.
        objects: number of different objects that some version needs.
        commits: number of commits that were walked.
        files: number of files at HEAD.
        unnamed: number of whole records at the end of the log that no commit names: uploads under way, or
            left over.
        damaged: everything that is wrong; empty when all is well. A damaged object stands here once for each
            of its paths.
        lost: what a repair could not save and has put out of the way, so that it can't be read.
        damaged_objects: identities of all damaged or missing objects that are not lost, in hex.
        damaged_commits: numbers of the commits whose records can't be read and were not given up.
        is_complete: whether all paths are named; where one object has very many, only the first ones are.
    """

    records: int = 0
    objects: int = 0
    commits: int = 0
    files: int = 0
    unnamed: int = 0
    damaged: list[Damage] = field(default_factory=list)
    lost: list[Damage] = field(default_factory=list)
    damaged_objects: list[str] = field(default_factory=list)
    damaged_commits: list[int] = field(default_factory=list)
    is_complete: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; what was lost before counts as long as something needs it."""
        return not self.damaged and not self.needed

    @property
    def needed(self) -> list[Damage]:
        """What is lost and needed by HEAD or a named version.

        What was lost of the system tree nobody could store again or delete; its directories have a finding.
        """
        return [one for one in self.lost if one.is_needed]

    @property
    def needed_paths(self) -> list[str]:
        """The paths of ``needed``."""
        return [damage.path for damage in self.needed if damage.path is not None]


def shown_versions(held: Sequence[Held]) -> str:
    """Returns a few of the versions in which something is, those of today first; empty for none."""
    ordered = sorted(held, key=lambda one: (not one.is_present, one.ref != "HEAD", one.ref, -one.last))
    shown = ", ".join(str(one) for one in ordered[:_SHOWN])
    rest = len(ordered) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
