"""Packs of commits that are damaged: fetched as other files are, or made anew of what a copy still has."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from svc.database.committer import CommitRequest
from svc.database.database import Database
from svc.database.packed_commits import LARGEST_PACKED, RANGE, encode_pack, may_be_packed, pack_path
from svc.database.references import HEAD_NAME
from svc.errors import SvcError
from svc.hashing import Hash, hash_content
from svc_maintenance.repair.report import RepairReport
from svc_maintenance.repair.sources import FileSource, Sources

__all__ = ["restore_packs"]


def restore_packs(
    database: Database, sources: Sources, report: RepairReport, fetch_for: Callable[[Hash], bool]
) -> None:
    """Restores packs, before anybody asks which commits there are."""
    state = database._state
    root = state.head().system_root
    fetched = report.fetched_objects
    if not fetch_for(root):
        try:
            ranges = sorted(state.packs.ranges(root))
        except SvcError:
            return
        for last in ranges:
            found = None
            with suppress(SvcError):
                found = state.packs.beside(root, last)
            if not found:  # also one that was given up before
                report.fetched_objects += any(_remake(database, last, source) for source in sources.files)
    if report.fetched_objects > fetched:
        state.index_packed_roots()


def _remake(database: Database, last: int, source: FileSource) -> bool:
    """Makes a pack of the commits that a copy from before has; returns whether it is the same."""
    entry = database.system().get(pack_path(last))
    if entry is None or source.database.objects.log.database_id != database.objects.log.database_id:
        return False
    payloads: dict[int, bytes] = {}
    for sequence in filter(may_be_packed, range(last - RANGE + 1, last)):
        try:
            payload, _ = source.database._state.commit_payload(sequence)
        except SvcError:
            continue
        if len(payload) <= LARGEST_PACKED:
            payloads[sequence] = payload
    content = encode_pack(payloads)
    if hash_content(content) != entry.hash:
        return False
    database.submit(CommitRequest(HEAD_NAME, [], database.store_bytes(content, system=True).pending))
    return True
