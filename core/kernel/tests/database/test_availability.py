"""After a collection a version is there as a whole, or named as collected: no half of it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.database import EMPTY_ROOT, Database
from svc.errors import CorruptRecord, NotFound, VersionCollected
from svc.hashing import Hash
from svc.log import RECORD_HEADER_SIZE
from svc_testing import live_objects, simulate_collection


def history(database: Database, commits: int) -> list[Hash]:
    """Commits a few versions of which each holds a file of its own; returns HEAD's roots from commit 1 on."""
    roots = []
    for number in range(commits):
        with database.transaction() as transaction:
            transaction.put(("a", f"{number}.txt"), b"%d" % number * 2000)
            transaction.put(("b.txt",), b"present %d" % number)
        roots.append(database.head().root)
    return roots


def is_collected(database: Database, root: Hash) -> bool:
    with pytest.raises(VersionCollected, match="was collected") as raised:
        database.at(root)
    body = raised.value.as_body()
    assert (raised.value.status, body["collected"], body["version"]) == (404, True, root.hex())
    return not database.is_available(root)


def test_what_lies_before_the_horizon_is_named_as_collected(database: Database) -> None:
    roots = history(database, 6)
    assert (database.horizon(), list(database.available_commits())) == (0, [1, 2, 3, 4, 5, 6])
    assert simulate_collection(database, 4) > 0
    assert (database.horizon(), list(database.available_commits())) == (4, [4, 5, 6, 7])
    assert all(is_collected(database, root) for root in roots[:3])
    for root in roots[3:]:
        version = database.at(root)
        assert all(version.read_all(entry) for path, entry in version.walk(files_only=True))
    with pytest.raises(NotFound) as raised:
        database.at(b"x" * 32)
    assert not isinstance(raised.value, VersionCollected)
    assert database.at(EMPTY_ROOT).entry_count(()) == 0


def test_every_way_of_naming_a_collected_version_says_so(database: Database) -> None:
    roots = history(database, 3)
    first_ms = database.commit(1).time_ms
    while database.head().time_ms == first_ms:
        with database.transaction() as transaction:
            transaction.put(("c.txt",), b"%d" % database.head().sequence)
    simulate_collection(database)
    for name in (roots[0].hex(), str(first_ms)):
        with pytest.raises(VersionCollected):
            database.named_version(name)
    with pytest.raises(VersionCollected):
        database.resolve_version(version=roots[0].hex())
    with pytest.raises(VersionCollected):
        database.resolve_version(at=first_ms)
    with pytest.raises(VersionCollected), database.transaction() as transaction:
        transaction.set_ref("snapshots/late", roots[0])
    with pytest.raises(NotFound, match="no commit of that time") as raised:
        database.head_at(first_ms - 1)
    assert not isinstance(raised.value, VersionCollected)


def test_what_a_ref_names_stays_until_the_ref_goes(database: Database) -> None:
    roots = history(database, 4)
    with database.transaction() as transaction:
        transaction.set_ref("snapshots/kept", roots[1])
        transaction.set_ref("forks/draft", roots[0])
    simulate_collection(database)
    assert [database.is_available(root) for root in roots] == [True, True, False, True]
    assert database.resolve_version(snapshot="kept") == roots[1]
    with database.transaction() as transaction:
        transaction.set_ref("snapshots/kept", None)
    assert is_collected(database, roots[1])


def test_a_root_that_came_again_is_there_by_its_last_commit(database: Database, tmp_path: Path) -> None:
    roots = history(database, 2)
    with database.transaction() as transaction:
        transaction.set_ref("HEAD", roots[0])
    with database.transaction() as transaction:
        transaction.put(("b.txt",), b"later")
    assert (database.commit_of(roots[0]), database.last_commit_of(roots[0])) == (1, 3)
    simulate_collection(database, 3)
    assert database.at(roots[0]).get(("b.txt",)) is not None
    assert is_collected(database, roots[1])


def test_a_tree_that_only_the_system_changed_after_is_that_of_the_later_commit(database: Database) -> None:
    root = history(database, 1)[0]
    with database.transaction() as transaction:
        transaction.put_system(("kept", "note"), b"text")
    assert database.last_commit_of(root) == 2
    history(database, 1)
    simulate_collection(database, 2)
    assert database.is_available(root)


def test_a_rebuilt_index_says_the_same(database: Database) -> None:
    roots = history(database, 5)
    with database.transaction() as transaction:
        transaction.set_ref("HEAD", roots[1])
        transaction.set_ref("forks/draft", roots[2])
    simulate_collection(database, 3)
    first_and_last = [(database.commit_of(root), database.last_commit_of(root)) for root in roots]
    available = [database.is_available(root) for root in roots]
    state = database.state_directory
    path = database.path
    database.close()
    for file in (state / "index").iterdir():
        file.unlink()
    with Database(path) as again:
        assert [(again.commit_of(root), again.last_commit_of(root)) for root in roots] == first_and_last
        assert [again.is_available(root) for root in roots] == available
        assert again.horizon() == 3


def test_the_simulation_forgets_all_but_what_is_available(database: Database) -> None:
    history(database, 3)
    simulate_collection(database)
    left = {hash for hash, _ in database.objects.index.objects()}
    assert left == live_objects(database) & left
    assert len(left) > 5


def test_the_present_version_can_be_read_where_the_record_of_the_horizon_is_damaged(path: Path) -> None:
    with Database(path) as database:
        roots = history(database, 3)
        simulate_collection(database, 2)
        system = database.system()
        entry = system.get(("collection",))
        assert entry is not None
        place = database.objects.find(system.chunks(entry)[0][0])
    with path.open("r+b") as file:
        file.seek(place.offset + RECORD_HEADER_SIZE)
        file.write(b"rotten")
    with Database(path, read_only=True) as database:
        version = database.at(database.head().root)
        assert version.read_all(version.get(("b.txt",))) == b"present 2"
        for root in roots[:2]:
            with pytest.raises(CorruptRecord):
                database.at(root)
