"""Which of a commit's transactions changed a path, and which paths its operations name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, field

from svc.plugin import Commit, Path, PathChange, TransactionRecord
from svc_history.rows import Author

__all__ = ["NamedPaths", "attribution", "authors_of", "records_of_head"]

_HEAD = "HEAD"


class NamedPaths(Struct):
    """The paths of HEAD's tree that the operations of a commit name.

    Attributes:
        replaced: where something else may stand now: the paths of puts, deletes, links and copies, and both
            ends of moves.
        above: the directories above those, which an operation changes without naming them, and those that a
            ``mkdir`` names, which makes a directory and changes none.
        moves_head: whether a transaction moved HEAD, so that every path may have changed.
    """

    replaced: set[Path] = field(default_factory=set)
    above: set[Path] = field(default_factory=set)
    moves_head: bool = False

    @classmethod
    def of(cls, records: Iterable[TransactionRecord]) -> NamedPaths:
        """Collects the paths of some transactions."""
        named = cls()
        replaced, above = named.replaced, named.above
        for change in _changes_of_head(records):
            path = change.path
            if change.kind == "ref":
                named.moves_head = True
                continue
            if change.kind == "mkdir":
                named._add_above(path)
                continue
            replaced.add(path)
            if path[:-1] not in above:
                named._add_above(path[:-1])
            if change.kind == "move" and change.source is not None:
                replaced.add(change.source)
                named._add_above(change.source[:-1])
        return named

    def _add_above(self, path: Path) -> None:
        above = self.above
        while path not in above:
            above.add(path)
            path = path[:-1]


def records_of_head(commit: Commit) -> list[TransactionRecord]:
    """Returns the transactions that changed paths of HEAD's tree, or moved HEAD."""
    return [one for one in commit.transactions if next(_changes_of_head((one,)), None) is not None]


def authors_of(records: Iterable[TransactionRecord]) -> tuple[Author, ...]:
    """Returns who made some transactions; equal ones once, in order."""
    return tuple(dict.fromkeys(Author(record.actor, record.message) for record in records))


def attribution(
    records: list[TransactionRecord], authors: tuple[Author, ...]
) -> Callable[[Path], int | None]:
    """Returns the function that says who changed a path: the last who named it, or what it lies in.

    None: a directory that nobody named; who changed what is in it changed it.
    """
    if len(authors) <= 1:
        return lambda path: 0
    numbers = {author: number for number, author in enumerate(authors)}
    last: dict[Path, tuple[int, int]] = {}
    for order, record in enumerate(records):
        number = numbers[Author(record.actor, record.message)]
        for change in _changes_of_head((record,)):
            if change.kind == "ref":
                last[()] = (order, number)
                continue
            last[change.path] = (order, number)
            if change.source is not None and change.kind == "move":
                last[change.source] = (order, number)

    def author_of(path: Path) -> int | None:
        named = [last[path[:length]] for length in range(len(path) + 1) if path[:length] in last]
        return max(named)[1] if named else None

    return author_of


def _changes_of_head(records: Iterable[TransactionRecord]) -> Iterator[PathChange]:
    for record in records:
        is_of_head = record.ref == _HEAD
        for change in record.changes:
            if change.path == (_HEAD,) if change.kind == "ref" else is_of_head and not change.system:
                yield change
