"""Bits flip anywhere in the file: opening works or names the damage, and what is whole reads back."""

from __future__ import annotations

import io
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from crash.boots import another_boot
from crash.scale import SEED, scaled
from svc.database import Database
from svc.errors import (
    CorruptRecord,
    DatabaseLatched,
    ForeignFile,
    SvcError,
    TruncatedFile,
    UnsupportedFormat,
)
from svc.hashing import Hash, ObjectKind
from svc.log import FIRST, RECORD_HEADER_SIZE, Log
from svc.paths import format_path
from svc.tree import EntryKind, Inner
from svc_maintenance.verification import verify
from svc_testing.faults import Fault, inject

PathName = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sound:
    """A log without damage, and what depends on what.

    Attributes:
        content: its bytes.
        files: each file of HEAD.
        needs: for each file of HEAD, the objects without which it cannot be read.
        last_batch: where the last batch of commits begins: damage there may pass for a crash's.
        mark: where the mark of the orderly close begins, behind the last commit.
        records: (offset, end of the payload, kind, hash) of every record.
        earlier: the files as they were before the last commit.
    """

    content: bytes
    files: dict[PathName, bytes]
    needs: dict[PathName, set[Hash]]
    last_batch: int
    mark: int
    records: list[tuple[int, int, ObjectKind, Hash]]
    earlier: dict[PathName, bytes]


def build(path: Path) -> Sound:
    """Makes 25 commits; leaves what lay beside the log after the first six as ``older.d``."""
    chance = random.Random(SEED)
    write(path, chance, range(6))
    shutil.copytree(f"{path}.d", path.with_name("older.d"))
    write(path, chance, range(6, 25))
    with Database(path) as database:
        version = database.at()
        found = [(path, entry) for path, entry in version.walk(files_only=True)]
        files = {path: version.read_all(entry) for path, entry in found}
        needs = {path: needed_by(database, path) for path, _ in found}
        head = database.commit(25)
        before = database.version_of(head.parent_root)
        earlier = {path: before.read_all(entry) for path, entry in before.walk(files_only=True)}
    with Log.open(path, read_only=True) as log:
        records = [
            (one.offset, one.offset + RECORD_HEADER_SIZE + one.stored_length, one.kind, one.hash)
            for one in log.scan()
        ]
    return Sound(path.read_bytes(), files, needs, head.durable_end, records[-1][0], records, earlier)


def write(path: Path, chance: random.Random, numbers: range) -> None:
    with Database(path) as database:
        for number in numbers:
            with database.transaction() as transaction:
                for name in ("a", "b"):
                    transaction.put((f"d{number % 4}", f"{name}{number}"), chance.randbytes(200 + number))
                if number % 5 == 0:
                    large = database.store(io.BytesIO(chance.randbytes(150_000)))
                    transaction.put(("large", f"{number}"), large)
                if number % 7 == 6:
                    transaction.delete((f"d{(number - 4) % 4}", f"a{number - 4}"))


def needed_by(database: Database, path: PathName) -> set[Hash]:
    """The objects on the way from HEAD's root to a file's bytes."""
    version = database.at()
    needed: set[Hash] = set()
    for depth in range(len(path)):
        directory = version.get(path[:depth])
        root = version.root if depth == 0 else directory.hash
        needed |= nodes_of(database, root)
    entry = version.get(path)
    assert entry.kind is EntryKind.FILE
    if entry.record is not None:
        needed.add(entry.record)
    return needed | {hash for hash, _ in version.chunks(entry)}


def nodes_of(database: Database, root: Hash) -> set[Hash]:
    """All nodes of one directory; more than a lookup needs, so that a test asks for less, never for more."""
    node = database.objects.read_node(root)
    children = node.children() if isinstance(node, Inner) else ()
    return {root}.union(*(nodes_of(database, child) for child in children))


@pytest.fixture
def sound(memory: Path) -> Sound:
    return build(memory / "sound.svcdb")


def hit_by(sound: Sound, position: int) -> tuple[ObjectKind, Hash] | None:
    """The record that a byte belongs to; None for padding and the file's header."""
    for offset, end, kind, hash in sound.records:
        if offset <= position < end:
            return kind, hash
    return None


def check_damaged(path: Path, sound: Sound, position: int) -> str:
    """Opens a file with one damaged byte; returns what came of it."""
    damaged = hit_by(sound, position)
    try:
        database = Database(path, create=False)
    except (CorruptRecord, ForeignFile, TruncatedFile, UnsupportedFormat) as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        # The header of the file, or a place where nobody can say what a crash has done.
        assert position < FIRST or "offset" in refusal.details, refusal
        assert path.read_bytes()[position] != sound.content[position], "a refused file was changed"
        return "refused"
    with database:
        if database.head().sequence < 25:
            # Damage in the last batch looks like a power cut's: the batch is kept beside the log.
            assert position >= sound.last_batch, position
            assert list(path.parent.glob(f"{path.name}.cut-*")), position
            assert {p: read(database, p) for p in sound.earlier} == sound.earlier
            return "cut"
        lost = {path for path in sound.files if read(database, path) is None}
        for name in set(sound.files) - lost:
            assert read(database, name) == sound.files[name], (position, name)
        expected = {name for name in sound.files if damaged is not None and damaged[1] in sound.needs[name]}
        assert lost <= expected, (position, lost - expected)
        report = verify(database)
        if position >= sound.mark:
            # The mark of the orderly close is nobody's data: it is cut and kept, and every file is there.
            assert not lost, position
            assert list(path.parent.glob(f"{path.name}.cut-*")), position
            return "mark"
        assert report.damaged, position
        if damaged is None:
            assert all("padding" in one.message for one in report.damaged), (position, report.damaged)
            return "padding"
        named = {one.path for one in report.damaged if one.path is not None}
        for name in lost:
            text = format_path(name)
            assert any(text == one or one == "/" or text.startswith(f"{one}/") for one in named), (
                name,
                named,
            )
        return "named"


def read(database: Database, path: PathName) -> bytes | None:
    """A file's bytes, or None where they are damaged; other bytes than those stored never come back."""
    try:
        version = database.at()
        entry = version.get(path)
        return None if entry is None else version.read_all(entry)
    except SvcError:
        return None


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("beside", ["nothing", "an older index", "the clean index"])
def test_a_flipped_bit_is_named_and_nothing_else_is_lost(sound: Sound, memory: Path, beside: str) -> None:
    path = memory / "damaged.svcdb"
    outcomes: dict[str, int] = {}
    for number in range(scaled(50, most=8000)):
        chance = random.Random(f"{SEED} {beside} {number}")
        # Most of the file is chunks: every second flip is of something else.
        offset, end, *_ = chance.choice(sound.records)
        position = chance.randrange(offset, end + 1) if number % 2 else chance.randrange(len(sound.content))
        position = min(position, len(sound.content) - 1)
        content = bytearray(sound.content)
        content[position] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        shutil.rmtree(f"{path}.d", ignore_errors=True)
        if beside != "nothing":
            kept = "older.d" if beside == "an older index" else "sound.svcdb.d"
            shutil.copytree(memory / kept, f"{path}.d")
        try:
            with another_boot():
                outcome = check_damaged(path, sound, position)
        except BaseException as error:
            error.add_note(f"seed {SEED}, flip {number}, position {position}, beside: {beside}")
            raise
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        for saved in memory.glob("*.cut-*"):
            saved.unlink()
    assert outcomes.get("named", 0) > outcomes.get("refused", 0), outcomes


def test_what_lay_beside_the_log_when_a_sync_failed_does_not_cut_what_was_written_since(memory: Path) -> None:
    """A note of the failed sync, put back later: the commits behind it were acknowledged all the same."""
    path = memory / "x.svcdb"
    with Database(path) as database:
        put(database, "first")
        with (
            inject(Fault("svc.log.LocalFileStorage.sync", 1, "EIO")),
            pytest.raises(DatabaseLatched),
        ):
            put(database, "uncertain")
        shutil.copytree(f"{path}.d", memory / "latched.d")
    with Database(path) as database:
        for number in range(5):
            put(database, f"later{number}")
    shutil.rmtree(f"{path}.d")
    shutil.copytree(memory / "latched.d", f"{path}.d")
    with Database(path) as database:
        names = {name for name, _ in database.at().entries(())}
        assert names - {"uncertain"} == {"first", *(f"later{number}" for number in range(5))}
        put(database, "after")
        assert verify(database).ok
    # What the failed sync may have lost was cut by the opening behind it, and nobody had been told of it.
    assert [one.name.endswith(".unfinished") for one in memory.glob("*.cut-*")] == [True]


def put(database: Database, name: str) -> None:
    with database.transaction() as transaction:
        transaction.put((name,), name.encode())


def test_a_damaged_file_header_is_refused_and_left_alone(sound: Sound, memory: Path) -> None:
    path = memory / "damaged.svcdb"
    for position in range(FIRST):
        content = bytearray(sound.content)
        content[position] ^= 4
        path.write_bytes(content)
        with pytest.raises((CorruptRecord, ForeignFile, UnsupportedFormat)):
            Database(path, create=False)
        assert path.read_bytes() == bytes(content)
