"""Backups and renewed records across collections of garbage."""

from __future__ import annotations

import os
from pathlib import Path

from svc.plugin import Database, collect, files_with_records
from svc_maintenance.verification import verify
from svc_testing.old_records import make_record_old

from .conftest import Backups, contents, restored  # noqa: TID252


def test_a_chain_whose_version_was_collected_is_begun_anew(
    backups: Backups, shop: Database, tmp_path: Path
) -> None:
    assert backups(chain_length=9)["kind"] == "export"
    backups.write({"a": b"2"})
    backups.write({"a": b"3"})
    collect(shop, upload_hours=0)
    result = backups(chain_length=9)
    assert result["kind"] == "export", "the version before is no more"
    assert restored(tmp_path / "other.svcdb", backups.directory / result["file"]) == contents(shop)
    backups.write({"a": b"4"})
    assert backups(chain_length=9)["kind"] == "patch"


def test_a_collection_between_two_steps_of_a_backup_takes_nothing_of_it(
    backups: Backups, shop: Database, tmp_path: Path
) -> None:
    with shop.transaction() as transaction:
        transaction.set_ref("snapshots/monday", shop.at().root)
    before = contents(shop)
    backups.write({"large": os.urandom(1000)})
    context = backups.context(snapshot="monday")

    def forget() -> None:
        if dict(shop.refs("snapshots")):
            with shop.transaction() as transaction:
                transaction.set_ref("snapshots/monday", None)
        collect(shop, upload_hours=0, wait_seconds=0.1)

    context.on_step = forget
    result = backups(context)
    assert restored(tmp_path / "other.svcdb", backups.directory / result["file"]) == before


def test_records_that_are_renewed_keep_their_chunks(shop: Database) -> None:
    with shop.transaction() as transaction:
        transaction.put(("large",), os.urandom(200_000))
    make_record_old(shop, ("large",))
    collect(shop, upload_hours=0)
    entry = shop.at().get(("large",))
    assert entry is not None
    with shop.transaction() as transaction:
        assert transaction.renew_record(("large",), entry)
        collect(shop, upload_hours=0, wait_seconds=0.1)
    collect(shop, upload_hours=0)
    assert [one.version for one in files_with_records(shop)] == [1]
    assert verify(shop).ok
    # The old record is garbage, and is gone with the versions before.
    old = collect(shop, upload_hours=0)
    assert old.garbage_entries == 0 or verify(shop).ok
