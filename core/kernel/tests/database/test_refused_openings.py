"""An opening that is refused has changed nothing: not even a torn end is cut."""

from __future__ import annotations

import os
import shutil

import pytest

from svc.database import Database
from svc.errors import CorruptRecord, DatabaseBusy, DatabaseClosed
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


def test_a_forked_child_cannot_open_what_its_parent_has_open_and_does_not_disturb_it(tmp_path):
    path = tmp_path / "data.svcdb"
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put(("a",), b"content of a")
        environment = database.objects.index._shared
        with environment.begin():
            child = os.fork()
            if child == 0:
                refused = 0
                try:
                    for read_only in (False, True):
                        with pytest.raises(DatabaseBusy, match="forked"):
                            Database(path, read_only=read_only)
                        refused += 1
                    with pytest.raises(DatabaseClosed):
                        database.objects.index.known([bytes(32)])
                    database.close()
                    with Database(tmp_path / "other.svcdb") as other:
                        assert other.head().sequence >= 0
                    refused += 1
                finally:
                    os._exit(refused)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
            assert str(os.getpid()) in environment._environment.readers(), "the child has ended a transaction"
        with database.transaction() as transaction:
            transaction.put(("b",), b"content of b")
        assert database.at().read_all(database.at().get(("a",))) == b"content of a"
