"""An opening that is refused has changed nothing: not even a torn end is cut."""

from __future__ import annotations

import shutil

import pytest

from svc.database import Database
from svc.errors import CorruptRecord
from svc.log import FIRST, Log

TORN = bytes(range(1, 21))


def make(path, *names):
    with Database(path) as database:
        for name in names:
            with database.transaction() as transaction:
                transaction.put((name,), name.encode() * 100)
    shutil.rmtree(path.with_name(path.name + ".d"))
    return path.read_bytes()


def whole_records(path, content):
    """The records up to the last commit, without the mark of an orderly close."""
    with Log.open(path, read_only=True) as log:
        end = [record.end for record in log.scan() if record.kind.name == "COMMIT"][-1]
    return content[:end]


@pytest.mark.parametrize("torn", [b"", TORN], ids=["whole", "torn"])
@pytest.mark.parametrize("keeps_directory", [False, True])
def test_a_log_to_which_another_was_appended_is_left_as_it_is(tmp_path, torn, keeps_directory) -> None:
    own, other = tmp_path / "own.svcdb", tmp_path / "other.svcdb"
    content = whole_records(own, make(own, "a", "b"))
    foreign = whole_records(other, make(other, "c", "d", "e"))[FIRST:]
    own.write_bytes(content)
    if keeps_directory:
        with Database(own):
            pass
        content = own.read_bytes()
    own.write_bytes(content + foreign + torn)
    before = own.read_bytes()
    for _ in range(2):
        with pytest.raises(CorruptRecord):
            Database(own)
        assert own.read_bytes() == before
        assert not list(tmp_path.glob("*.cut-*"))


def test_a_torn_end_alone_is_cut_as_ever(tmp_path) -> None:
    own = tmp_path / "own.svcdb"
    content = whole_records(own, make(own, "a", "b"))
    own.write_bytes(content + TORN)
    with Database(own) as database:
        assert database.recovered_bytes == len(TORN)
        assert [name for name, _ in database.at().entries(())] == ["a", "b"]
