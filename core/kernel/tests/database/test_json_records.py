"""Records as JSON in the system tree."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from svc import Database
from svc.database import read_record, same_content
from svc.errors import PreconditionFailed

PLACE = ("notes", "one")


class Note(msgspec.Struct, frozen=True):
    text: str


class Other(msgspec.Struct, frozen=True):
    number: int


def test_a_record_is_read_in_its_form_and_in_no_other(tmp_path: Path) -> None:
    with Database(tmp_path / "d.svcdb") as database:
        with database.transaction() as changes:
            changes.put_system(PLACE, msgspec.json.encode(Note("a")))
            changes.put_system(("notes", "two"), b"\xff{")
        system = database.system()
        entry = system.get(PLACE)
        assert read_record(system, entry, Note) == Note("a")
        assert read_record(system, entry, Note) is read_record(system, entry, Note)
        assert read_record(system, entry, Other) is None
        assert read_record(system, system.get(("notes", "two")), Note) is None
        assert read_record(system, system.get(("notes",)), Note) is None
        assert read_record(system, None, Note) is None


def test_what_is_not_to_be_kept_is_decoded_anew(tmp_path: Path) -> None:
    with Database(tmp_path / "d.svcdb") as database:
        with database.transaction() as changes:
            changes.put_system(PLACE, msgspec.json.encode(Note("not kept")))
        system = database.system()
        entry = system.get(PLACE)
        first = read_record(system, entry, Note, keep=False)
        assert first == read_record(system, entry, Note, keep=False) == Note("not kept")
        assert first is not read_record(system, entry, Note, keep=False)


@pytest.mark.parametrize("changed", [False, True])
def test_a_change_goes_through_while_the_content_is_the_same(tmp_path: Path, changed: bool) -> None:
    with Database(tmp_path / "d.svcdb") as database:
        for turn in range(2):  # at first there is nothing, then there is the record
            entry = database.system().get(PLACE)
            if changed:
                with database.transaction() as changes:
                    changes.put_system(PLACE, b'{"text": "%d"}' % turn)
            change = database.transaction()
            change.put_system(PLACE, msgspec.json.encode(Note("mine")), condition=same_content(entry))
            if changed:
                with pytest.raises(PreconditionFailed):
                    change.commit()
            else:
                change.commit()
                assert read_record(database.system(), database.system().get(PLACE), Note) == Note("mine")
