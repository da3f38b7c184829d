"""Random histories of a small tree, for views that are compared with a model."""

from __future__ import annotations

from random import Random
from typing import Any

from svc.errors import SvcError
from svc.plugin import Database, Entry, Path
from svc_testing import simulate_collection

FIRST = [("a", "b", "c"), ("a", "b", "a"), ("a", "c"), ("b", "a"), ("b", "b", "b", "b"), ("c",)]


def operations_of(
    database: Database, random: Random, root: bytes | None = None
) -> list[tuple[str, Path, Any]]:
    """A few random operations, many of them on what is there."""
    present = list(entries(database, root or database.head().root)) or FIRST

    def path() -> Path:
        if random.random() < 0.6:
            return random.choice(present)
        return tuple(random.choices("abc", k=random.choice((1, 1, 2, 2, 3, 4))))

    def one() -> tuple[str, Path, Any]:
        kind = random.choice(
            ("put", "put", "delete", "delete", "move", "copy", "mkdir", "link", "bring", "again")
        )
        number = random.choice(database.available_commits())
        more = {
            "put": random.choice((0, 1, random.randrange(1000))),
            "bring": (number, path()),
            "again": number,
        }
        return kind, path(), more.get(kind, path())

    return [one() for _ in range(random.choice((1, 1, 2, 3, 6)))]


def collect_some(database: Database, random: Random) -> None:
    """Collects what lies before HEAD, or before one of the commits that led to it."""
    simulate_collection(database, random.choice((None, random.choice(database.available_commits()))))


def commit(database: Database, operations: list[tuple[str, Path, Any]], ref: str = "HEAD") -> None:
    """Makes one commit of those of the operations that are possible."""
    while operations:
        try:
            with database.transaction(ref=ref) as transaction:
                for kind, path, more in operations:
                    if kind == "put":
                        transaction.put(path, b"%d" % more if more else b"")
                    elif kind == "delete":
                        transaction.delete(path, recursive=True)
                    elif kind == "mkdir":
                        transaction.mkdir(path)
                    elif kind == "link":
                        transaction.link(path, "/a")
                    elif kind in ("move", "copy"):
                        getattr(transaction, kind)(path, more)
                    else:
                        number, source = more if kind == "bring" else (more, path)
                        entry = database.version_of(database.commit(number).root).get(source)
                        # In the place of one that is not there, something that is possible once at most.
                        transaction.put_entry(path, entry) if entry else transaction.mkdir(("d",))
        except SvcError as error:
            operations = [*operations]
            del operations[error.details["operation"]]
        else:
            return


def entries(database: Database, root: bytes) -> dict[Path, Entry]:
    return dict(database.version_of(root).walk())
