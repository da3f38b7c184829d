"""Views and the horizon of a collection: what a view gets of commits whose trees are gone.

There are three kinds (docs/hooks/svc_register_views.md): a view takes commits without trees, starts at HEAD,
or begins anew with the state at the horizon. In each case data from before a collection become the same as
data that are made anew after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from msgspec.structs import replace

from svc.database.commit import PathChange, TransactionRecord
from svc.database.references import HEAD_NAME
from svc.database.version import Version
from svc.database.view import CommitStep, View
from svc.database.view_marks import NO_HASH, ViewMark
from svc.database.view_storage import ViewStorage
from svc.errors import VersionCollected
from svc.hashing import Hash
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT

if TYPE_CHECKING:
    from svc.database.commit import Commit
    from svc.database.database import Database

__all__ = [
    "CollectedVersion",
    "Collecting",
    "begins_at_horizon",
    "can_go_on",
    "collected_step",
    "commit_to_start_at",
    "first_mark",
    "restarted",
    "steps_behind",
    "tree_at",
]


class _NoObjects:
    """Stands for the objects of a version that was collected: nothing is read from it."""

    def __init__(self, root: Hash) -> None:
        self._root = root

    def __getattr__(self, name: str) -> NoReturn:
        raise VersionCollected(version=self._root.hex())


class CollectedVersion(Version):
    """A version that was collected: it has a root, and all reading raises ``VersionCollected``."""

    __slots__ = ()

    def __init__(self, root: Hash) -> None:
        super().__init__(_NoObjects(root), root)  # type: ignore[arg-type]

    @property
    def is_collected(self) -> bool:
        """Whether the version was collected: yes."""
        return True

    def sibling(self, root: Hash) -> Version:
        """Returns a version of which nothing can be read either: it may have gone with this one."""
        return CollectedVersion(root)


def begins_at_horizon(view: View) -> bool:
    """Whether a view begins with the state at the horizon: it said nothing else."""
    return not view.takes_collected and not view.starts_at_head


def can_go_on(view: View, mark: ViewMark, horizon: int) -> bool:
    """Whether a view can apply what comes behind a mark; if not, it begins anew."""
    if mark.applied >= horizon or view.takes_collected:
        return True
    return begins_at_horizon(view) and mark.horizon == horizon and mark.applied == horizon - 1


def first_mark(database: Database, view: View, horizon: int, side: int = 0) -> ViewMark:
    """Returns the mark of data that begin anew, and follow the commits from the first that the view gets."""
    mark = ViewMark(view.format, database.database_id, horizon=horizon, side=side)
    if begins_at_horizon(view) and horizon > 1:
        identity = database.commit_identity(horizon - 1)
        return mark._replace(applied=horizon - 1, identity=NO_HASH if identity is None else identity)
    return mark


def commit_to_start_at(database: Database, view: View) -> CommitStep | None:
    """Returns HEAD's commit, for a view that starts there; None: it follows all commits from the first."""
    sequence = database.head().sequence
    if not sequence or not view.starts_at_head:
        return None
    commit, identity = database.read_commit(sequence)
    return CommitStep(commit, database.version_of(EMPTY_ROOT), database.version_of(commit.root), identity)


def tree_at(database: Database, mark: ViewMark) -> Version:
    """Returns the user tree of the last commit that is wholly in the data of a mark."""
    return database.version_of(_root_of(database, mark.applied))


def _root_of(database: Database, sequence: int) -> Hash:
    return database.commit_state(sequence)[1] if sequence else EMPTY_ROOT


def restarted(mark: ViewMark, horizon: int) -> ViewMark:
    """Returns a mark without steps of commits that lost their trees since: they come anew, with others."""
    if mark.steps and mark.begun_at < horizon and mark.applied < horizon:
        return mark._replace(steps=0, more=0, begun=NO_HASH)
    return mark


def steps_behind(
    database: Database, view: View, mark: ViewMark, after: int, horizon: int
) -> Iterator[CommitStep]:
    """Yields the commits behind a number as a view gets them; the caller holds the present generation."""
    takes, begins = view.takes_collected, begins_at_horizon(view)
    version_of = database.version_of
    last, last_root = after, None
    for commit, identity in database.feed(after=after):
        before = commit.parent_root
        if commit.sequence > last + 1 and max(last, 1) >= horizon:
            # Repairs have given up those between: what they changed counts as this one's.
            before = _root_of(database, last) if last_root is None else last_root
        last, last_root = commit.sequence, commit.root
        if takes and commit.sequence <= horizon:
            yield collected_step(commit, identity)
        elif begins and commit.sequence == mark.horizon:
            yield _beginning(database, commit, identity)
        else:
            yield CommitStep(commit, version_of(before), version_of(commit.root), identity)


def collected_step(commit: Commit, identity: Hash) -> CommitStep:
    """Returns a commit as a view gets it that takes those without trees."""
    return CommitStep(commit, CollectedVersion(commit.parent_root), CollectedVersion(commit.root), identity)


def _beginning(database: Database, commit: Commit, identity: Hash) -> CommitStep:
    """The commit at the horizon, as if it had moved HEAD from the empty tree to its own."""
    moved = TransactionRecord(None, None, HEAD_NAME, (PathChange("ref", (HEAD_NAME,)),))
    whole = replace(
        commit,
        parent_root=EMPTY_ROOT,
        parent_system_root=EMPTY_SYSTEM_ROOT,
        transactions=(moved,),
    )
    return CommitStep(whole, database.version_of(EMPTY_ROOT), database.version_of(commit.root), identity)


class _Begun(NamedTuple):
    """A commit in the middle of which a transaction ended."""

    mark: bytes
    steps: Iterator[None]
    storage: ViewStorage
    view: View


class Collecting:
    """Takes the trees of commits out of the data of a view that takes commits without trees."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._begun: _Begun | None = None

    def run(
        self,
        view: View,
        mark: ViewMark,
        horizon: int,
        storage: ViewStorage,
        is_over: Callable[[ViewStorage], bool],
    ) -> ViewMark:
        """Lets the view give up commits, the oldest first, until a transaction is over."""
        begun, self._begun = self._begun, None
        if type(view).collect is View.collect:
            return mark._replace(horizon=horizon)
        while mark.horizon < horizon:
            if begun is not None and begun.mark == mark.pack() and begun.view is view:
                steps, used = begun.steps, begun.storage
                used.take_over(storage)
            else:
                steps, used = self._steps(view, mark, storage), storage
            begun = None
            done = mark.collected
            for _ in steps:
                done += 1
                if is_over(used):
                    used.write()
                    mark = mark._replace(collected=done)
                    self._begun = _Begun(mark.pack(), steps, used, view)
                    return mark
            used.write()
            mark = mark._replace(horizon=mark.horizon + 1, collected=0)
            if is_over(used):
                break
        return mark

    def _steps(self, view: View, mark: ViewMark, storage: ViewStorage) -> Iterator[None]:
        commit, identity = self._database.read_commit(mark.horizon + 1)
        return iter(view.collect(collected_step(commit, identity), storage, mark.collected) or ())
