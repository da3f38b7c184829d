"""The two forms of a view, by single commits or by several at once; the kernel drives both as batches."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from svc.database.commit import Commit
from svc.database.version import Version
from svc.database.view_storage import ViewStorage
from svc.hashing import Hash

__all__ = [
    "MOST_AT_ONCE",
    "Applying",
    "BatchView",
    "BegunCommits",
    "CommitStep",
    "View",
    "ViewBatch",
    "begin_batch",
    "most_at_once",
    "slices",
]

MOST_AT_ONCE = 64
"""Commits that ``ViewBatch.apply`` gets in one call."""

_MOST_CHANGES = 4096
"""Changes that they name together, unless one commit names more."""


class CommitStep(NamedTuple):
    """One commit, as a batch gets it.

    Attributes:
        commit: what was done.
        before: the user tree before it; where a repair has given up the commits before it, that before those.
        after: the user tree after it.
        identity: hash of the commit's record.
    """

    commit: Commit
    before: Version
    after: Version
    identity: Hash

    @property
    def is_collected(self) -> bool:
        """Whether a collection has destroyed the trees, so that only the commit is left to read."""
        return self.after.is_collected


class View(Protocol):
    """What a plugin writes to follow the commit feed, commit by commit.

    Attributes:
        name: of the view, ``<plugin id>.<what>``; its data live under this name.
        format: number of the layout of its data; another number makes the view anew, and programs that know
            different ones keep their data apart.

    With a further attribute ``keeps_files = True`` its storage has a ``directory`` of its own. It may have
    ``bind``, ``work``, ``takes_collected`` and ``collect`` as a ``BatchView``.
    """

    name: str
    format: int

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage
    ) -> Generator[None] | None:
        """Takes one commit into the view.

        Called once for each commit, in order, in one transaction with the mark that says so; may be
        called again for a commit whose transaction was lost. Runs in a worker thread or in the
        background; must depend on its arguments only.

        A commit may do much. A view whose work follows from that, not from the number of operations, is a
        generator function: wherever it yields, a step of the commit is done, and the kernel may write what
        it has and go on in another transaction, or in another process. In the same process the generator
        goes on where it was (a scan may be held over a yield, and shows what is there then). Elsewhere
        ``apply`` is called anew: with the keyword argument ``start``, the number of steps that are done, if
        it takes one by that name; it must then do none of them again, and yield for those to come
        only. One that does not take ``start`` begins again at its first step.

        Args:
            commit: what was done.
            before: the user tree before it.
            after: the user tree after it.
            storage: the view's data.
        """
        ...


class ViewBatch(Protocol):
    """What a ``BatchView`` does within a transaction. Its methods are called in one thread at a time."""

    def apply(self, commits: Sequence[CommitStep], start: int) -> Generator[None] | None:
        """Takes commits into the view: one or more, in order, none twice. Called any number of times.

        As with ``View.apply`` it may be a generator function that yields behind each step. The steps are
        those of all these commits together. Commits that are begun anew, in another process perhaps, come
        together again as they came first, and ``start`` is the number of steps that are done.

        Args:
            commits: at most 64 (fewer when they change much).
            start: how many steps of them are done.
        """
        ...

    def end(self) -> None:
        """Ends a transaction: after this, what was applied is in the storage and in the directory's files.

        The mark that says so is written next. It may never get there: then the files are ahead, and the same
        commits come again. Where ``apply`` stands at a ``yield``, the batch goes on in another transaction,
        unless another process has gone on: after ``end`` it holds nothing that another process waits for.
        """
        ...

    def close(self) -> None:
        """Lets go of everything; the last call in any case.

        After a failure, what was applied since the last ``end`` is not to be kept.
        """
        ...


class BatchView(Protocol):
    """A view that takes several commits at once.

    Attributes:
        name, format: as of ``View``.
        keeps_files: whether its storage has a ``directory`` of its own.

    It may have more, each for itself:

    - ``bind(context: PluginContext) -> BatchView`` gives the view of one database, of the same name and
      format. Called whenever the view's plugin begins to be used for a database, or has new settings: in
      servers before ``svc_start``, in commands when the view is first asked for. The context is that of the
      plugin: settings, database, and what others add to the families that it drives.
    - ``starts_at_head = True``: data that begin anew are at HEAD's commit at once, instead of following all
      commits from the first one. ``start(storage, commit: CommitStep)`` is called in that transaction, with
      the commit at HEAD, ``before`` being the empty tree; it writes down what is to be done, and its work
      does that. In a database without commits nothing is started.
    - ``work(storage, at: Version, should_stop: Callable[[], bool])`` does a piece of work that follows from
      no commit, on top of the commits that are in the view, in a transaction of its own. ``at`` is the user
      tree of the last of them. It asks ``should_stop`` every ten milliseconds or so and returns when that
      says so; it does something, however little, before it asks first. The answer is whether more is left; or
      a function that waits until there may be more, some milliseconds at most: it is called behind the
      transaction, when others can write. All work must be possible from what is stored. A view may keep more
      in itself between two calls, but only as long as ``storage`` is the same object: another one means that
      somebody else has written, or that something was lost. Called in one thread at a time.
    - ``is_full(storage) -> bool``, for one that has work, says whether so much of it is left that no commit
      is to be taken before some is done: what it keeps for its work stays bounded, however many commits come
      at once and whoever applies them. Then ``work`` must find something to do.
    - ``takes_collected = True``: commits whose trees a collection has destroyed come like others, with
      versions whose ``is_collected`` is true, of which nothing can be read. Without it, and without
      ``starts_at_head``, the data are made anew behind a collection, beside those that are read meanwhile:
      first comes the commit at the horizon, as if it had moved HEAD to its tree (``before`` is empty, the one
      transaction is nobody's and has the change ``ref HEAD``), then those behind it.
    - ``collect(step: CommitStep, storage: ViewStorage, start: int = 0) -> Generator[None] | None``, for one
      that takes such commits: called for each commit that loses its trees after it was applied, in order. It
      leaves what ``apply`` gives for the commit without them. May be a generator function, with ``start`` as
      of ``View.apply``; called a second time, it changes nothing.
    """

    name: str
    format: int
    keeps_files: bool

    def begin(self, storage: ViewStorage) -> ViewBatch:
        """Begins a batch, in a transaction; other processes cannot write to the view as long as that lasts.

        Args:
            storage: the view's data; valid until the batch is closed.
        """
        ...


class _SingleCommits:
    def __init__(self, view: View, storage: ViewStorage) -> None:
        self._apply: Callable[..., Any] = view.apply
        self._storage = storage
        self._takes_start = "start" in inspect.signature(view.apply).parameters

    def apply(self, commits: Sequence[CommitStep], start: int) -> Generator[None] | None:
        ((commit, before, after, _),) = commits
        more = {"start": start} if start and self._takes_start else {}
        steps: Generator[None] | None = self._apply(commit, before, after, self._storage, **more)
        return steps

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass


def begin_batch(view: View | BatchView, storage: ViewStorage) -> ViewBatch:
    """Begins a batch of a view of either form."""
    begin = getattr(view, "begin", None)
    batch: ViewBatch = begin(storage) if begin is not None else _SingleCommits(view, storage)  # type: ignore[arg-type]
    return batch


def most_at_once(view: View | BatchView) -> int:
    """Returns how many commits a batch of this view gets in one call, at most."""
    return MOST_AT_ONCE if hasattr(view, "begin") else 1


def slices(feed: Iterable[CommitStep], most: int) -> Iterator[Sequence[CommitStep]]:
    """Yields commits in runs that one call of ``apply`` gets."""
    run: list[CommitStep] = []
    changes = 0
    for step in feed:
        count = sum(len(transaction.changes) for transaction in step.commit.transactions)
        mixes = bool(run) and run[-1].is_collected != step.is_collected
        if run and (mixes or len(run) >= most or changes + count > _MOST_CHANGES):
            yield tuple(run)
            run, changes = [], 0
        run.append(step)
        changes += count
        if most == 1:
            yield tuple(run)
            run, changes = [], 0
    if run:
        yield tuple(run)


class BegunCommits(NamedTuple):
    """Commits in the middle of which a transaction ended, to go on with.

    Where another ``mark`` stands in the storage, somebody else has gone on. ``steps`` is what ``apply`` gave.
    """

    mark: bytes
    commits: Sequence[CommitStep]
    steps: Iterator[None]
    batch: ViewBatch
    storage: ViewStorage
    view: View | BatchView


class Applying(Struct):
    """What one transaction applies commits with; ``batch`` is there from the first commit on.

    ``begun`` are the commits in the middle of which it goes on, or has ended.
    """

    view: View | BatchView
    batch: ViewBatch | None = None
    begun: BegunCommits | None = None

    def close(self) -> None:
        """Lets go of the batch, which may be in the middle of anything."""
        if self.batch is not None:
            self.batch.close()
