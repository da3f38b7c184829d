"""What a plugin writes to follow the commit feed: a view, and the batch that it takes commits with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from svc.database.commit import Commit
from svc.database.version import Version
from svc.database.view_storage import ViewStorage
from svc.hashing import Hash

if TYPE_CHECKING:
    from svc.plugins.context import PluginContext

__all__ = ["CommitStep", "View", "ViewBatch"]


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


class ViewBatch(ABC):
    """What a view does within a transaction. Its methods are called in one thread at a time."""

    @abstractmethod
    def apply(self, commits: Sequence[CommitStep], start: int) -> Generator[None] | None:
        """Takes commits into the view: one or more, in order, none twice. Called any number of times.

        May be a generator function as ``View.apply``; the steps are those of all these commits together.
        Commits that are begun anew, in another process perhaps, come together again as they came first.

        Args:
            commits: at most 64, and fewer when they name more than 4096 changes together. None has lost its
                trees, or all have.
            start: how many steps of them are done.
        """

    def end(self) -> None:
        """Ends a transaction: after this, what was applied is in the storage and in the directory's files.

        The mark that says so is written next. It may never get there: then the files are ahead, and the same
        commits come again. Where ``apply`` stands at a ``yield``, the batch goes on in another transaction,
        unless another process has gone on: after ``end`` it holds nothing that another process waits for,
        such as the lock of a library's writer.
        """

    def close(self) -> None:
        """Lets go of everything; the last call in any case.

        After a failure, what was applied since the last ``end`` is not to be kept.
        """


class View:
    """Data that are made of the commits, in order. A subclass has ``apply`` or ``begin``, and more.

    Its methods run in a worker thread or in the background process. ``storage`` is the view's data within one
    transaction.

    Attributes:
        name: ``<plugin id>.<what>``; the data live under this name.
        format: number of the layout of the data; another number makes the view anew, and programs that know
            different ones keep their data apart.
        keeps_files: whether its storage has a ``directory``, for files of its own.
        starts_at_head: whether data that begin anew are at HEAD's commit at once, by ``start``, instead of
            following all commits from the first one.
        takes_collected: whether commits whose trees a collection has destroyed come like others. The
            ``is_collected`` of their versions is true: they have a ``root``, and whatever is read from them
            raises ``VersionCollected``. Without it, and without ``starts_at_head``, data that begin anew get
            first the commit at the horizon of a collection, as if it had moved HEAD to its tree: ``before``
            is empty, the one transaction is nobody's and has the change ``ref HEAD``.
    """

    name: str
    format: int
    keeps_files: bool = False
    starts_at_head: bool = False
    takes_collected: bool = False

    def bind(self, context: PluginContext) -> View:
        """Returns the view of one database, of the same name and format; itself, where it is one for all.

        Called whenever the view's plugin begins to be used for a database, or has new settings: in servers
        before ``svc_start``, in commands when the view is first asked for. A new object goes on with the same
        data.

        Args:
            context: that of the plugin: settings, database, and what others add to the families that it
                drives, which it may ask for at any time.
        """
        return self

    def start(self, storage: ViewStorage, commit: CommitStep) -> None:
        """Begins new data at HEAD, for a view that ``starts_at_head``; not in a database without commits.

        Called in the transaction that marks them as being at that commit. It writes down what there is to do,
        for ``work``, and takes no longer than a step. Later commits come meanwhile.

        Args:
            storage: the view's data.
            commit: the commit at HEAD; ``before`` is the empty tree.
        """

    def apply(
        self, commit: Commit, before: Version, after: Version, storage: ViewStorage, start: int = 0
    ) -> Generator[None] | None:
        """Takes one commit into the view.

        Called for each commit, in order, in one transaction with the mark that says so. It depends on its
        arguments only. A commit whose transaction was lost comes again, and changes nothing the second time.

        A commit may do much. A view whose work follows from that, not from the number of operations, is a
        generator function: at each ``yield`` a step of the commit is done, and the kernel may write what it
        has and go on in another transaction, or in another process. In the same process the generator goes on
        where it was, with the same ``storage``; a scan held over a ``yield`` goes on behind the last row
        that it gave, and shows what is there then. Elsewhere ``apply`` is called anew, with the number of
        steps that are done; or from the first step, if a collection has destroyed the trees meanwhile.

        Args:
            commit: what was done.
            before: the user tree before it.
            after: the user tree after it.
            storage: the view's data.
            start: how many steps are done. It must do none of them again, and yield for those to come only.
        """

    def begin(self, storage: ViewStorage) -> ViewBatch:
        """Begins a batch, in a transaction; other processes cannot write to the view as long as that lasts.

        A view with a ``begin`` of its own gets several commits at once, and its ``apply`` is not called.

        Args:
            storage: the view's data; valid until the batch is closed.
        """
        return _SingleCommits(self, storage)

    def work(
        self, storage: ViewStorage, at: Version, should_stop: Callable[[], bool]
    ) -> bool | Callable[[], None]:
        """Does a piece of work that follows from no commit, in a transaction of its own.

        Called in one thread at a time: while no commit waits, for 20 milliseconds between two batches while
        commits keep coming, and once a second after nothing was left. When all is done, the view must hold
        what it would hold if it were made anew.

        All work must be possible from what is stored. A view may keep more in itself between two calls, but
        only as long as ``storage`` is the same object: another one means that somebody else has written, or
        that something was lost. Commits that this process applies in between do not change it.

        Args:
            storage: the view's data.
            at: the user tree of the last commit in the view; the log may have later ones.
            should_stop: asked every ten milliseconds or so, but not before something is done, however
                little; when it says so, the view returns.

        Returns:
            Whether more is left; or a function that waits until there may be more, some milliseconds at most:
            it is called behind the transaction, when others can write.
        """
        return False

    def is_full(self, storage: ViewStorage) -> bool:
        """Whether so much work is left that no commit is to be taken before some is done.

        Asked before each call of ``apply``. So what waits for ``work`` stays bounded, however many commits
        come at once and whoever applies them. While it is true, ``work`` must find something to do.
        """
        return False

    def collect(self, step: CommitStep, storage: ViewStorage, start: int = 0) -> Generator[None] | None:
        """Leaves of a commit what its record says, for a view that ``takes_collected`` and reads trees too.

        Called as work for each commit that loses its trees after it was applied, in order. What is left is
        what ``apply`` gives for the commit without them. May be a generator function as ``apply``; called a
        second time, it changes nothing.

        Args:
            step: the commit; nothing can be read of its versions.
            storage: the view's data.
            start: how many steps are done.
        """


class _SingleCommits(ViewBatch):
    def __init__(self, view: View, storage: ViewStorage) -> None:
        self._view = view
        self._storage = storage

    def apply(self, commits: Sequence[CommitStep], start: int) -> Generator[None] | None:
        ((commit, before, after, _),) = commits
        return self._view.apply(commit, before, after, self._storage, start)
