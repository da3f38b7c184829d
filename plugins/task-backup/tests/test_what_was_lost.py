"""What a repair could not save: a backup names it, and goes on without it where it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.errors import CorruptRecord
from svc.plugin import Database
from svc_maintenance.repair import repair

from .conftest import Backups, contents  # noqa: TID252


def test_a_backup_names_what_was_lost_and_goes_on_without_it_when_told(
    backups: Backups, shop: Database, tmp_path: Path
) -> None:
    assert backups(chain_length=9)["kind"] == "export"
    backups.write({"lost": b"nobody has this any more"})
    entry = shop.at().get(("lost",))
    assert entry is not None
    offset = shop.objects.find(entry.hash).offset
    shop.close()
    with shop.path.open("r+b") as file:
        file.seek(offset + 65)
        file.write(b"rotten bytes")
    repair(shop.path)
    with Database(shop.path) as database:
        again = Backups(database)
        for chain_length in (1, 9):
            with pytest.raises(CorruptRecord, match=r"these need: /lost\. "):
                again(chain_length=chain_length)
        result = again(chain_length=9, without_lost=True)
        assert (result["kind"], result["report"]["lost"]) == ("export", ["/lost"])
        with Database(again.directory / result["file"], read_only=True) as written:
            assert sorted(contents(written)) == ["a", "large"]
