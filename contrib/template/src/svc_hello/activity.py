"""A view: which commits each author has made, kept up to date as commits come in."""

from __future__ import annotations

from svc.plugin import Commit, Database, Version, View, ViewStorage

__all__ = ["ActivityView", "transactions_of"]

NOBODY = "nobody"


class ActivityView(View):
    """Remembers every transaction under its author.

    A key is the author, a zero byte, and the place of the transaction in the log. Counting keys instead of
    keeping a counter makes a second delivery of a commit harmless.
    """

    name = "contrib.hello.activity"
    format = 1
    takes_collected = True
    """Only the commit is read, and no tree: one whose trees a collection has destroyed is like any other."""

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
        """Takes one commit into the view."""
        for place, transaction in enumerate(commit.transactions):
            author = transaction.actor or NOBODY
            storage.put(_prefix(author) + b"%020d.%06d" % (commit.sequence, place), b"")


def transactions_of(database: Database, author: str) -> int:
    """Returns how many transactions an author has made, everything acknowledged so far included."""
    return database.view(ActivityView.name).read(
        lambda storage: sum(1 for _ in storage.scan(_prefix(author))), minimum=database.head().sequence
    )


def _prefix(author: str) -> bytes:
    return author.encode() + b"\x00"
