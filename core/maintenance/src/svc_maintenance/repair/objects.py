"""What versions need and the log does not hold: fetched from sources and committed, or listed as lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from msgspec import to_builtins

from svc.clock import now_ms
from svc.database.collection.record import PLAN_PATH, STATE_PATH, CollectionState, read_state
from svc.database.committer import CommitRequest
from svc.database.database import Database
from svc.database.lost import LOST, REPORTS, Lost
from svc.database.references import HEAD_NAME
from svc.errors import CorruptRecord, NotFound, SvcError
from svc.hashing import Hash, ObjectKind
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT, PendingObjects, encode_object
from svc.paths import Path, format_path
from svc.tree import decode_node
from svc_maintenance.repair.given_up import give_up_directories
from svc_maintenance.repair.packs import restore_packs
from svc_maintenance.repair.report import RepairReport
from svc_maintenance.repair.sources import Sources
from svc_maintenance.verification.horizon import known_horizon
from svc_maintenance.verification.taint import Taint

__all__ = ["ObjectRepair", "write_report"]

_LARGEST_BATCH_BYTES = 8 << 20
_MOST_FETCHED_VERSIONS = 16
_MOST_IN_REPORT = 1000

Roots = list[tuple[Hash, Hash]]


class ObjectRepair:
    """Finds, fetches and lists what is missing of a database whose log is in order."""

    def __init__(
        self, database: Database, sources: Sources, report: RepairReport, told: Callable[[int, int], None]
    ) -> None:
        self._database = database
        self._sources = sources
        self._report = report
        self._told = told
        self._roots: Roots = []
        self._missing_commits: list[int] = []
        self._given_up: tuple[Path, ...] = ()

    def run(self) -> None:
        """Fetches what can be had, lets HEAD leave a root that is lost, and writes down what is lost."""
        self._given_up = Lost.of(self._database).given_up
        restore_packs(self._database, self._sources, self._report, self._fetch_for)
        self._roots = list(self._all_roots())
        missing = self._fetch_all()
        system_root = self._database.head().system_root
        self._replace_roots(missing)
        if system_root in missing:
            # The packs of the earlier system tree can be read again.
            self._missing_commits.clear()
            self._roots = list(self._all_roots())
            self._database._state.index_packed_roots()
        self._report.lost_commits = self._missing_commits
        self._give_up_directories()
        self._write_down(missing)
        self._state_horizon()

    def _all_roots(self) -> Iterator[tuple[Hash, Hash]]:
        """Yields the roots of all commits; of one that is lost the next one names them."""
        database = self._database
        until = database.head().sequence
        horizon = known_horizon(database)
        for sequence in range(1, until + 1):
            try:
                commit, _ = database.read_commit(sequence)
            except (NotFound, SvcError):
                self._missing_commits.append(sequence)
                continue
            if sequence > horizon and self._missing_commits and self._missing_commits[-1] == sequence - 1:
                yield commit.parent_root, commit.parent_system_root
            if sequence >= horizon:
                yield commit.root, commit.system_root
            if sequence % 64 == 0:
                self._told(sequence, until)

    def _fetch_for(self, system_root: Hash) -> bool:
        self._roots = [(EMPTY_ROOT, system_root)]
        return not self._fetch_all()

    def _fetch_all(self) -> set[Hash]:
        """Fetches until nothing more can be had; returns what is missing then."""
        fetched_versions = 0
        while True:
            taint = Taint(self._database.objects, lambda _offset: False)
            for roots in self._roots:
                for root in roots:
                    taint.follow(root)
            missing = taint.damaged
            if not missing or self._fetch(missing):
                if not missing:
                    return missing
                continue
            # Nobody has single objects of what is left: perhaps somebody has whole versions.
            for root, _ in reversed(self._roots):
                if fetched_versions >= _MOST_FETCHED_VERSIONS:
                    return missing
                if taint.is_tainted(root):
                    fetched_versions += 1
                    if self._sources.fetch_version(root) and self._fetch(missing):
                        break
            else:
                return missing

    def _fetch(self, missing: set[Hash]) -> int:
        """Commits what sources have of some objects; returns how many they were."""
        pending = PendingObjects()
        count = 0
        for hash in sorted(missing):
            form = self._sources.find(hash)
            if form is None:
                continue
            framed, place = encode_object(form.kind, hash, form.content, system=form.system)
            pending.add(hash, framed, place)
            if form.kind is ObjectKind.NODE:
                # A root of HEAD may be among them, without which nothing can be committed.
                self._database.objects.cache.put_node(hash, decode_node(form.content))
            count += 1
            if pending.size >= _LARGEST_BATCH_BYTES:
                self._submit(pending)
                pending = PendingObjects()
        if pending.records:
            self._submit(pending)
        self._report.fetched_objects += count
        return count

    def _submit(self, pending: PendingObjects) -> None:
        self._database.submit(CommitRequest(HEAD_NAME, [], pending))

    def _replace_roots(self, missing: set[Hash]) -> None:
        """Replaces a lost root of HEAD by the latest one available: without a root nothing can be written.

        Meanwhile this process reads the other root in place of the lost one.
        """
        head = self._database.head()
        nodes = self._database.objects.cache.nodes
        lost_root, lost_system = head.root in missing, head.system_root in missing
        stand_in = self._latest_there(0, missing) or EMPTY_ROOT
        try:
            if lost_root:
                nodes[head.root] = self._database.objects.read_node(stand_in)
            if lost_system:
                earlier = self._latest_there(1, missing) or EMPTY_SYSTEM_ROOT
                nodes[head.system_root] = self._database.objects.read_node(earlier)
                self._write_lost(missing)
                self._report.replaced_roots.append(
                    "The root of the system tree was lost: users, keys, settings and refs are those of an "
                    "earlier commit again. Look who may do what."
                )
            if lost_root:
                self._state_horizon()  # without it nobody can say which versions HEAD may be moved to
                with self._database.transaction(message="repair: the root of HEAD was lost") as transaction:
                    transaction.set_ref(HEAD_NAME, stand_in, expected=head.root)
                self._report.replaced_roots.append(
                    f"HEAD's root {head.root.hex()} was lost: HEAD is the version {stand_in.hex()} now."
                )
        finally:
            if lost_root:
                nodes.pop(head.root, None)
            if lost_system:
                nodes.pop(head.system_root, None)

    def _latest_there(self, number: int, missing: set[Hash]) -> Hash | None:
        return next((roots[number] for roots in reversed(self._roots) if roots[number] not in missing), None)

    def _give_up_directories(self) -> None:
        system_roots = [system_root for _, system_root in self._roots]
        given_up = give_up_directories(self._database, self._given_up, system_roots)
        self._given_up = tuple(given_up)
        self._report.given_up_directories = [format_path(path) for path in given_up]

    def _write_down(self, missing: set[Hash]) -> None:
        """Stores the list of what is lost in the system tree, unless it is empty and was empty before."""
        before = Lost.of(self._database)
        known = before.objects(), before.commits, before.given_up
        if known != (missing, frozenset(self._missing_commits), self._given_up):
            self._write_lost(missing)

    def _state_horizon(self) -> None:
        """Stores the horizon of collections again if it is lost: no collection could begin without it."""
        system = self._database.system()
        try:
            read_state(system)
        except CorruptRecord:
            state = CollectionState(horizon=known_horizon(self._database), at_ms=now_ms())
            with self._database.transaction(message="repair: the horizon was lost") as transaction:
                transaction.put_system(STATE_PATH, state.encode())
                if system.get(PLAN_PATH) is not None:
                    # What it did not get to is collected once more.
                    transaction.delete_system(PLAN_PATH)

    def _write_lost(self, missing: set[Hash]) -> None:
        needed = Lost.of(self._database).needed  # the verification at the end looks anew
        lost = Lost(missing, self._missing_commits, self._given_up, needed)
        with self._database.transaction(message="repair") as transaction:
            transaction.put_system(LOST, lost.encode())


def write_report(database: Database, report: RepairReport) -> None:
    """Leaves what a repair did in the system tree, with the first of the paths that lost data."""
    shown = {
        "repaired_at": now_ms(),
        "restored_records": report.restored_records,
        "fetched_objects": report.fetched_objects,
        "voided_records": report.voided_records,
        "cleaned": report.cleaned,
        "lost_commits": report.lost_commits[:_MOST_IN_REPORT],
        "extended_from": report.extended_from,
        "given_up_commits": report.given_up_commits,
        "replaced_roots": report.replaced_roots,
        "given_up_directories": report.given_up_directories,
        "saved_to": report.saved_to,
        "state_saved_to": report.state_saved_to,
        "lost_paths": len(report.lost),
        "lost": to_builtins(report.lost[:_MOST_IN_REPORT]),
    }
    with database.transaction(message="repair") as transaction:
        transaction.put_system((*REPORTS, f"{now_ms():013d}.json"), json.dumps(shown).encode())
