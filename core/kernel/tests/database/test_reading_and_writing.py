"""A transaction goes in, a version comes out, and nothing that was there is lost."""

from __future__ import annotations

import io
import random
import shutil
from pathlib import Path

import pytest

from svc.database import Condition, Database
from svc.errors import (
    AlreadyExists,
    Conflict,
    DatabaseClosed,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    ReadOnly,
)
from svc.hashing import ObjectKind, hash_object
from svc.tree import EntryKind


def put(database: Database, name: str, content: bytes, **options: object) -> bytes:
    with database.transaction() as transaction:
        transaction.put(tuple(name.split("/")), content, **options)  # type: ignore[arg-type]
    assert transaction.result is not None
    return transaction.result.version


def content_of(database: Database, name: str, root: bytes | None = None) -> bytes:
    version = database.at(root)
    entry = version.get(tuple(name.split("/")))
    assert entry is not None
    return version.read_all(entry)


def test_what_is_put_is_read_back_with_its_parents(database: Database) -> None:
    put(database, "a/b/c.txt", b"hello", content_type="text/plain")
    assert content_of(database, "a/b/c.txt") == b"hello"
    entry = database.at().get(("a", "b", "c.txt"))
    assert entry is not None
    assert entry.content_type == "text/plain"
    assert entry.hash == hash_object(ObjectKind.CHUNK, b"hello")
    assert [path for path, _ in database.at().walk()] == [("a",), ("a", "b"), ("a", "b", "c.txt")]


@pytest.mark.parametrize("size", [0, 1, 4096, 65536, 65537, 262144, 5_000_000])
def test_contents_of_every_size_class_come_back_and_ranges_of_them(database: Database, size: int) -> None:
    content = random.Random(size).randbytes(size)
    with database.transaction() as transaction:
        transaction.put(("f",), database.store(io.BytesIO(content)))
    entry = database.at().get(("f",))
    assert entry is not None and entry.size == size
    assert entry.hash == hash_object(ObjectKind.CHUNK, content)
    assert database.at().read_all(entry) == content
    for start, length in ((0, 1), (size // 2, 70_000), (max(0, size - 5), 100), (size, 10)):
        assert b"".join(database.at().read(entry, start, length)) == content[start : start + length]


def test_a_compressible_content_takes_little_room_and_a_second_copy_none(database: Database) -> None:
    content = b"the same line again and again\n" * 100_000
    with database.transaction() as transaction:
        transaction.put(("one",), database.store(io.BytesIO(content)))
    once = database.objects.log.tail
    assert once < len(content) / 10
    with database.transaction() as transaction:
        transaction.put(("two",), database.store(io.BytesIO(content)))
    assert database.objects.log.tail - once < 2000


def test_an_insertion_into_a_large_file_stores_little(database: Database) -> None:
    content = random.Random(7).randbytes(8_000_000)
    with database.transaction() as transaction:
        transaction.put(("f",), database.store(io.BytesIO(content)))
    before = database.objects.log.tail
    changed = content[:4_000_000] + b"inserted" * 12 + content[4_000_000:]
    with database.transaction() as transaction:
        transaction.put(("f",), database.store(io.BytesIO(changed)))
    assert database.objects.log.tail - before < 400_000


def test_every_version_stays_readable(database: Database) -> None:
    roots = [put(database, "f", str(number).encode()) for number in range(20)]
    assert len(set(roots)) == 20
    for number, root in enumerate(roots):
        assert content_of(database, "f", root) == str(number).encode()


def test_an_unknown_root_is_not_a_version_nor_is_the_system_tree_or_a_directory(database: Database) -> None:
    put(database, "a/b", b"x")
    with database.transaction() as transaction:
        transaction.put_system(("plugins", "x"), b"secret")
    directory = database.at().get(("a",))
    assert directory is not None
    for root in (b"\1" * 32, directory.hash, database.head().system_root):
        with pytest.raises(NotFound):
            database.at(root)
    with pytest.raises(InvalidInput):
        database.resolve_version(version="zz")
    with pytest.raises(NotFound):
        database.resolve_version(snapshot="none", version=database.head().root.hex())


def test_a_transaction_applies_everything_or_nothing(database: Database) -> None:
    put(database, "kept", b"1")
    before = database.head()
    with pytest.raises(Conflict) as caught, database.transaction() as transaction:
        transaction.put(("new",), b"2")
        transaction.delete(("kept",))
        transaction.put(("new", "below"), b"3")
    assert caught.value.details["operation"] == 2
    assert database.head() == before
    assert content_of(database, "kept") == b"1"


def test_an_exception_in_the_block_commits_nothing(database: Database) -> None:
    with pytest.raises(RuntimeError), database.transaction() as transaction:
        transaction.put(("a",), b"1")
        raise RuntimeError
    assert database.head().sequence == 0


def test_structure_is_respected(database: Database) -> None:
    put(database, "d/f", b"1")
    for operation in (
        lambda transaction: transaction.put(("d",), b"over a directory"),
        lambda transaction: transaction.put(("d", "f", "x"), b"below a file"),
        lambda transaction: transaction.delete(("d",)),
        lambda transaction: transaction.delete((), recursive=True),
        lambda transaction: transaction.move(("d",), ("d", "e")),
        lambda transaction: transaction.mkdir(("d",)),
        lambda transaction: transaction.link(("d",), "/elsewhere"),
    ):
        with pytest.raises((Conflict, InvalidInput)), database.transaction() as transaction:
            operation(transaction)
    with pytest.raises(NotFound), database.transaction() as transaction:
        transaction.delete(("nothing",))
    with pytest.raises(NotFound), database.transaction() as transaction:
        transaction.put((".svc-system", "x"), b"")
    assert content_of(database, "d/f") == b"1"


def test_move_and_copy_take_everything_below_and_cost_no_data(database: Database) -> None:
    for number in range(100):
        put(database, f"d/sub/{number}", b"x" * 5000)
    before = database.objects.log.tail
    with database.transaction() as transaction:
        transaction.copy(("d",), ("copy",))
        transaction.move(("d",), ("moved",))
    assert database.objects.log.tail - before < 8000
    assert database.at().get(("d",)) is None
    assert database.at().totals(("copy",)) == database.at().totals(("moved",))
    assert database.totals().files == 200
    put(database, "copy/sub/1", b"changed")
    assert content_of(database, "moved/sub/1") == b"x" * 5000


def test_totals_are_exact_without_walking(database: Database) -> None:
    put(database, "a/1", b"12345")
    put(database, "a/b/2", b"1234567")
    with database.transaction() as transaction:
        transaction.link(("l",), "/a/1")
        transaction.mkdir(("empty",))
    totals = database.totals()
    assert (totals.files, totals.directories, totals.symlinks, totals.size) == (2, 3, 1, 12)
    assert totals.chunks == 2
    with database.transaction() as transaction:
        transaction.delete(("a",), recursive=True)
    totals = database.totals()
    assert (totals.files, totals.directories, totals.symlinks, totals.size, totals.chunks) == (0, 1, 1, 0, 2)


def test_conditions_make_compare_and_swap(database: Database) -> None:
    put(database, "f", b"1", condition=Condition(if_none_match=("*",)))
    with pytest.raises(PreconditionFailed):
        put(database, "f", b"2", condition=Condition(if_none_match=("*",)))
    etag = hash_object(ObjectKind.CHUNK, b"1").hex()
    put(database, "f", b"2", condition=Condition(if_match=(etag,)))
    with pytest.raises(PreconditionFailed):
        put(database, "f", b"3", condition=Condition(if_match=(etag,)))
    with pytest.raises(PreconditionFailed):
        put(database, "missing", b"3", condition=Condition(if_match=("*",)))
    assert content_of(database, "f") == b"2"


def test_many_small_contents_are_stored_once_each_and_only_what_is_new(database: Database) -> None:
    """More than is kept in memory, so that a part of it is appended ahead; some twice, some there already."""
    chance = random.Random(1)
    contents = [chance.randbytes(chance.choice((0, 1, 1000, 5000))) + b"x" * 4096 for _ in range(400)]
    put(database, "before", contents[0])
    chunks = database.totals().chunks
    tail = database.objects.log.tail
    with database.transaction() as transaction:
        for number, content in enumerate(contents * 2):
            transaction.put((f"d{number % 7}", f"f{number}"), content)
        transaction.put(("empty",), b"")
    assert database.totals().chunks == chunks + len(set(contents)) - 1
    assert database.objects.log.tail - tail < sum(map(len, contents))
    for number, content in enumerate(contents * 2):
        assert content_of(database, f"d{number % 7}/f{number}") == content
    assert content_of(database, "empty") == b""
    with database.transaction() as transaction:
        for number, content in enumerate(contents):
            transaction.put((f"d{number % 7}", f"f{number}"), content + b"y")
            transaction.delete((f"d{(number + 400) % 7}", f"f{number + 400}"))
    for number, content in enumerate(contents):
        assert content_of(database, f"d{number % 7}/f{number}") == content + b"y"
    assert database.totals().files == len(contents) + 2


def test_a_content_that_changes_after_its_put_is_stored_as_it_was(database: Database) -> None:
    content = bytearray(b"before")
    with database.transaction() as transaction:
        transaction.put(("f",), content)  # type: ignore[arg-type]
        content[:] = b"after!"
    assert content_of(database, "f") == b"before"


def test_small_contents_are_refused_by_a_database_that_was_closed(path: Path) -> None:
    with Database(path) as database:
        transaction = database.transaction()
        transaction.put(("f",), b"x")
    with pytest.raises(DatabaseClosed):
        transaction.commit()


def test_links_are_followed_for_32_hops_and_not_in_circles(database: Database) -> None:
    put(database, "d/f", b"1")
    with database.transaction() as transaction:
        transaction.link(("l0",), "/d")
        for number in range(1, 33):
            transaction.link((f"l{number}",), f"/l{number - 1}")
        transaction.link(("circle",), "/circle")
        transaction.link(("dangling",), "/nowhere")
    version = database.at()
    assert version.follow(("l31", "f"))[0] == ("d", "f")
    with pytest.raises(InvalidInput):
        version.follow(("l32", "f"))
    with pytest.raises(InvalidInput):
        version.follow(("circle",))
    with pytest.raises(NotFound):
        version.follow(("dangling",))
    entry = version.get(("l0",))
    assert entry is not None and entry.kind is EntryKind.SYMLINK and entry.target == "/d"


def test_the_limit_of_a_stream_is_kept(database: Database) -> None:
    with pytest.raises(PayloadTooLarge):
        database.store(io.BytesIO(b"x" * 100), limit=99)
    assert database.store(io.BytesIO(b"x" * 100), limit=100).size == 100


def test_same_content_in_any_order_has_the_same_root(tmp_path: Path) -> None:
    names = [f"d{number % 7}/{number}" for number in range(300)]
    roots = set()
    for seed in range(3):
        random.Random(seed).shuffle(names)
        with Database(tmp_path / f"{seed}.svcdb") as database:
            for start in range(0, 300, 50):
                with database.transaction() as transaction:
                    for name in names[start : start + 50]:
                        transaction.put(tuple(name.split("/")), name.encode(), created_ms=5, updated_ms=7)
            roots.add(database.head().root)
    assert len(roots) == 1


def test_chunks_uploaded_ahead_make_the_same_content_as_a_stream(database: Database) -> None:
    content = random.Random(1).randbytes(700_000)
    pieces = [content[start : start + 200_000] for start in range(0, len(content), 200_000)]
    hashes = [hash_object(ObjectKind.CHUNK, piece) for piece in pieces]
    assert [database.put_chunks({hash: piece}) for hash, piece in zip(hashes, pieces, strict=True)] == [
        True
    ] * 4
    assert database.put_chunks({hashes[0]: pieces[0]}) is False
    with pytest.raises(InvalidInput):
        database.put_chunks({hashes[0]: b"other bytes"})
    with pytest.raises(InvalidInput) as caught:
        database.content_of_chunks([hashes[0], b"\0" * 32])
    assert caught.value.details["missing"] == ["00" * 32]
    stored = database.content_of_chunks(hashes, size=700_000)
    streamed = database.store(io.BytesIO(content))
    assert (stored.record, stored.content_hash) == (streamed.record, streamed.content_hash)


def test_system_contents_are_no_chunks_of_users(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put_system(("plugins", "x"), b"secret")
    assert not database.has_chunk(hash_object(ObjectKind.CHUNK, b"secret"))
    assert not database.has_chunk(hash_object(ObjectKind.CHUNK, b"secret", system=True))
    entry = database.system().get(("plugins", "x"))
    assert entry is not None and database.system().read_all(entry) == b"secret"
    assert database.at().get(("plugins",)) is None


def test_refs_name_roots_and_forks_do_not_move_head(database: Database) -> None:
    root = put(database, "f", b"1")
    with database.transaction() as transaction:
        transaction.set_ref("forks/draft", root, expected=b"")
        transaction.set_ref("snapshots/a/b%", root)
    with pytest.raises(AlreadyExists), database.transaction() as transaction:
        transaction.set_ref("forks/draft", root, expected=b"")
    with database.transaction(ref="forks/draft") as transaction:
        transaction.put(("f",), b"2")
    fork = database.resolve_version(fork="draft")
    assert transaction.result is not None and transaction.result.version == fork
    assert content_of(database, "f", fork) == b"2"
    assert content_of(database, "f") == b"1"
    assert dict(database.refs()) == {"forks/draft": fork, "snapshots/a/b%": root}
    with pytest.raises(NotFound), database.transaction(ref="forks/none") as transaction:
        transaction.put(("f",), b"2")
    put(database, "f", b"3")
    with database.transaction() as transaction:
        transaction.set_ref("HEAD", root, expected=database.head().root)
        transaction.set_ref("snapshots/a/b%", None)
    assert content_of(database, "f") == b"1"
    assert [name for name, _ in database.refs()] == ["forks/draft"]


def test_every_state_of_a_fork_stays_readable_also_without_the_index(path: Path) -> None:
    states = []
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put(("f",), b"of HEAD")
        with database.transaction() as transaction:
            transaction.set_ref("forks/draft", database.head().root, expected=b"")
        for number in range(3):
            with database.transaction(ref="forks/draft") as transaction:
                transaction.put(("f",), b"%d" % number)
            assert transaction.result is not None
            states.append(transaction.result.version)
        with database.transaction() as transaction:
            transaction.set_ref("forks/draft", None)
        assert [content_of(database, "f", state) for state in states] == [b"0", b"1", b"2"]
        assert database.commit_of(states[0]) is None, "HEAD never was there"
        below = database.at().get(("f",))
        assert below is not None
        with pytest.raises(NotFound):
            database.require_version(below.hash)
    shutil.rmtree(f"{path}.d")
    with Database(path) as database:
        assert [content_of(database, "f", state) for state in states] == [b"0", b"1", b"2"]


def test_reading_only_reads(path: Path) -> None:
    with Database(path) as database:
        put(database, "f", b"1")
        with Database(path, read_only=True) as reader:
            assert content_of(reader, "f") == b"1"
            put(database, "f", b"2")
            assert content_of(reader, "f") == b"2"
            with pytest.raises(ReadOnly):
                reader.transaction()
    with Database(path, read_only=True) as reader:
        assert content_of(reader, "f") == b"2"
