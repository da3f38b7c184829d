"""One run of a mirror: what changed on either side, and what follows from it, until both are alike."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from svc_mirror.client.deciding import Action
from svc_mirror.client.fetching import Fetcher, base_of
from svc_mirror.client.local_tree import Left, LocalTree, hash_of
from svc_mirror.client.report import Report
from svc_mirror.client.scanning import Found, Scanner
from svc_mirror.client.server import Server
from svc_mirror.client.state import State
from svc_mirror.client.storing import Storer
from svc_mirror.client.values import Base, Kind
from svc_mirror.errors import MassDeletion

__all__ = ["Options", "run_once"]

_MOST_PASSES = 6
_FEW = 20


class Options(Struct, frozen=True):
    """How a mirror runs.

    Attributes:
        down_only: nothing is sent.
        dry_run: nothing is changed but what is known.
        may_delete_much: whether somebody said that a mass deletion is meant.
    """

    down_only: bool = False
    dry_run: bool = False
    may_delete_much: bool = False


def run_once(
    tree: LocalTree,
    state: State,
    server: Server,
    options: Options,
    report: Report,
    *,
    check: Callable[[], None] = lambda: None,
    asks: bool = True,
) -> None:
    """Makes both sides alike, as far as may be; what is left stands in the report.

    Args:
        tree: the directory of this machine.
        state: what is known of both.
        server: the directory of the server.
        options: how.
        report: told what is done.
        check: called between two steps; it may raise, and the next run goes on.
        asks: whether the server is asked what changed: not where it is known to be as the last run left it,
            which has written nothing.

    Raises:
        MassDeletion: so much is gone from one side that it may be a mistake; nothing was done.
        SvcError: the server can't be reached or refuses everything; or the disk is full.
    """
    for number in range(_MOST_PASSES):
        report.begin_pass()
        if asks or number:
            server.fetch_changes(state, check)
        scanner = Scanner(tree, state, server.directory, report.leave, down_only=options.down_only)
        found = []
        for each in scanner.run():
            check()
            found.append(each)
        if not options.may_delete_much:
            _refuse_mass_deletion(state, found, is_empty_here=scanner.is_empty_here)
        if options.dry_run:
            _tell(found, report)
            return
        sent_again = _Pass(tree, state, server, report, check).run(found)
        if state.has_unseen():
            server.fetch_changes(state, check)
            _tell_hidden(state, sent_again, report)
        if not report.needs_another_pass:
            break
    if not report.left:
        # Nobody is waiting for what was fetched in part.
        for name in os.listdir(tree.parts):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(tree.parts, name))


class _Pass:
    """Does what was found: first what goes, then what comes."""

    def __init__(
        self,
        tree: LocalTree,
        state: State,
        server: Server,
        report: Report,
        check: Callable[[], None],
    ) -> None:
        self._tree = tree
        self._state = state
        self._report = report
        self._check = check
        self._fetcher = Fetcher(tree, state, server, report)
        self._storer = Storer(tree, state, server, report)
        self._cleared: set[str] = set()

    def run(self, found: list[Found]) -> set[str]:
        """Returns what was sent again as the server had not told of it."""
        self._settle([each for each in found if Action.SETTLE in each.actions])
        found = self._move(found)
        deepest_first = found[::-1]
        for is_directory in (False, True):
            for each in deepest_first:
                there = self._state.remote(each.path) if Action.DELETE_THERE in each.actions else None
                if there is not None and (there.kind is Kind.DIRECTORY) is is_directory:
                    self._check()
                    self._storer.delete(each.path, there)
            # What stands in a directory goes before it does, and in an earlier commit.
            self._storer.finish()
        for each in deepest_first:
            if Action.DELETE_HERE in each.actions:
                self._try(each, self._delete_here)
        for each in found:
            if Action.SET_ASIDE in each.actions:
                self._try(each, self._set_aside)
        for each in found:
            if Action.FETCH in each.actions:
                self._try(each, self._fetch)
        self._fetcher.finish()
        for kind in (Kind.DIRECTORY, Kind.FILE, Kind.LINK):
            for each in found:
                if Action.STORE in each.actions and each.seen is not None and each.seen.kind is kind:
                    self._try(each, self._store)
            self._storer.finish()
        return self._storer.sent_again

    def _move(self, found: list[Found]) -> list[Found]:
        """Moves on the server what has another name here; returns what is left to do.

        Only what may be a file under another name is read here: a new one as large as one that is gone.
        """
        gone: dict[int, dict[str, Found]] = {}
        for each in found:
            there = self._state.remote(each.path) if each.actions == [Action.DELETE_THERE] else None
            if there is not None and there.kind is Kind.FILE and there.size:
                gone.setdefault(there.size, {})[there.hash] = each
        for each in found:
            seen = each.seen
            if each.actions != [Action.STORE] or seen is None or seen.kind is not Kind.FILE:
                continue
            if seen.size not in gone or self._state.remote(each.path) is not None:
                continue
            self._check()
            try:
                hash, seen = hash_of(self._tree, each.path)
            except (Left, OSError):
                continue  # It is looked at again when it is stored.
            old = gone.get(seen.size, {}).pop(hash, None)
            if old is not None:
                self._storer.move(old.path, each.path, seen, hash)
        self._storer.finish()
        return [each for each in found if each.path not in self._storer.moved]

    def _try(self, found: Found, step: Callable[[Found], None]) -> None:
        self._check()
        try:
            step(found)
        except (Left, FileNotFoundError) as error:
            reason = "it vanished" if isinstance(error, FileNotFoundError) else str(error)
            self._report.leave(found.path, reason, getattr(error, "again", True))

    def _settle(self, alike: list[Found]) -> None:
        with self._state.transaction():
            for path, _, seen in alike:
                if seen is None:
                    self._state.set_base(path, None)
                elif seen.kind is Kind.DIRECTORY:
                    self._state.set_base(path, Base(Kind.DIRECTORY, ""))
                else:
                    self._state.set_base(path, base_of(seen, seen.value))

    def _delete_here(self, found: Found) -> None:
        path, _, seen = found
        assert seen is not None
        if seen.kind is not Kind.DIRECTORY:
            self._tree.remove(path, seen)
            self._report.done["deleted_here"] += 1
        elif not self._tree.remove_directory(path):
            # It holds what is not on the server: it stays, as a new one.
            self._report.needs_another_pass = True
        self._cleared.add(path)
        with self._state.transaction():
            self._state.set_base(path, None)

    def _set_aside(self, found: Found) -> None:
        kept_as = self._tree.set_aside(found.path)
        self._report.note_conflict(found.path, kept_as)
        self._cleared.add(found.path)
        with self._state.transaction():
            self._state.set_base(found.path, None)

    def _fetch(self, found: Found) -> None:
        there = self._state.remote(found.path)
        if there is None:
            return
        if len(found.actions) > 1:
            if found.path not in self._cleared:
                return
            if there.kind is not Kind.DIRECTORY and self._tree.look(found.path) is not None:
                self._set_aside(found)
        self._fetcher.fetch(found.path, there, found.seen if len(found.actions) == 1 else None)

    def _store(self, found: Found) -> None:
        assert found.seen is not None
        there = self._state.remote(found.path)
        if Action.DELETE_THERE in found.actions:
            if found.path not in self._storer.deleted:
                return
            there = None
        self._storer.store(found.path, found.seen, there)


def _refuse_mass_deletion(state: State, found: list[Found], *, is_empty_here: bool) -> None:
    """Raises MassDeletion where one side has lost most of what both had."""
    known = state.count_files()
    here = there = new_here = new_there = 0
    for path, actions, seen in found:
        base = state.base(path)
        if base is None:
            new_here += Action.STORE in actions
            new_there += Action.FETCH in actions
        elif base.kind is not Kind.DIRECTORY:
            here += seen is None and Action.DELETE_THERE in actions
            there += Action.DELETE_HERE in actions
    if here and is_empty_here:
        raise MassDeletion(
            "The directory is empty. If its disk is not mounted, mount it; if all of it is to be deleted on "
            "the server too, give --yes.",
            files=known,
        )
    for gone, new, where in ((here, new_here, "here"), (there, new_there, "on the server")):
        if gone - new > max(_FEW, known // 2):
            raise MassDeletion(
                f"Of {known} files {gone} were deleted {where}. If they are to be deleted on the other side "
                "too, give --yes.",
                files=gone,
            )


def _tell_hidden(state: State, sent_again: set[str], report: Report) -> None:
    for path in sorted(sent_again):
        if state.is_unseen(path):
            with state.transaction():
                state.note_unseen(path, is_told=True)
            report.note_hidden(path)
        else:
            report.needs_another_pass = True


def _tell(found: list[Found], report: Report) -> None:
    for path, actions, _ in found:
        for action in actions:
            if action is not Action.SETTLE:
                report.plan(action.value, path)
