"""What the key index knows of commits may rot: nothing runs on for ever, and a verification tells."""

from __future__ import annotations

import pytest

from svc.database import Database
from svc.errors import CorruptRecord
from svc.objects.commit_index import COMMITS, ROOTS
from svc_maintenance.repair import repair
from svc_maintenance.verification import is_whole_again, verify


@pytest.fixture
def commits(path):
    with Database(path) as database:
        for number in range(8):
            with database.transaction() as transaction:
                transaction.put((f"f{number}",), str(number).encode() * 100)
    return path


def repaired(path):
    repair(path)
    with Database(path) as database:
        assert verify(database).damaged == []
        assert [commit.sequence for commit, _ in database.feed(after=0)] == list(range(1, 9))


def test_a_commit_under_a_number_that_is_far_ahead_ends_the_feed(commits):
    with Database(commits) as database:
        with database.objects.index._begin(COMMITS, True) as transaction:
            key = (5).to_bytes(8, "big")
            transaction.put(b"\x40" + key[1:], transaction.pop(key))
        with pytest.raises(CorruptRecord, match="key index is damaged"):
            list(database.feed(after=0))
        assert verify(database).damaged_commits == [5]
    repaired(commits)


def test_a_version_that_the_index_does_not_find_is_told(commits):
    with Database(commits) as database:
        root = database.commit(3).root
        with database.objects.index._begin(ROOTS, True) as transaction:
            value = transaction.pop(root)
        [damage] = verify(database).damaged
        assert damage.version == root.hex()
        with database.objects.index._begin(ROOTS, True) as transaction:
            transaction.put(root, (4).to_bytes(8, "big") + value[8:])
        [damage] = verify(database).damaged
        assert damage.version == root.hex()
    repaired(commits)


@pytest.mark.parametrize("number", [0, COMMITS, ROOTS])
def test_values_that_were_cut_short_are_told(commits, number):
    with Database(commits) as database:
        with database.objects.index._begin(number, True) as transaction:
            for key, value in list(transaction.cursor()):
                transaction.put(key, value[:-3])
        report = verify(database)
        assert report.damaged
        assert "key index" in report.damaged[-1].message
    repaired(commits)


def test_what_the_index_does_not_find_is_not_whole_again(commits):
    with Database(commits) as database:
        hash = database.at().get(("f3",)).hash
        assert is_whole_again(database, [hash], [])
        with database.objects.index._begin(0, True) as transaction:
            transaction.delete(hash)
        assert not is_whole_again(database, [hash], [])
