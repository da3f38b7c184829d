"""A view: how many transactions each author has made, kept up to date as commits come in."""

from __future__ import annotations

from svc.plugin import Commit, Database, Version, View, ViewStorage

__all__ = ["WritesView", "transactions_of"]


class WritesView(View):
    """One key for each transaction, so that a second delivery of a commit is harmless."""

    name = "contrib.hello.writes"
    format = 1
    takes_collected = True
    """Only the commit is read, and no tree: one whose trees a collection has destroyed is like any other."""

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> None:
        """Takes one commit into the view."""
        for place, transaction in enumerate(commit.transactions):
            storage.put(_prefix(transaction.actor) + b"%020d.%06d" % (commit.sequence, place), b"")


def transactions_of(database: Database, author: str | None) -> int:
    """Returns how many transactions an author has made, everything acknowledged so far included."""
    return database.view(WritesView.name).read(
        lambda storage: sum(1 for _ in storage.scan(_prefix(author))), minimum=database.head().sequence
    )


def _prefix(author: str | None) -> bytes:
    return (author or "").encode() + b"\x00"
