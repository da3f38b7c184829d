"""Every file at HEAD is found by its chunks, whichever way it came there."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path as FilePath
from random import Random
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.plugin import Database, EntryKind, Path, ViewStorage
from svc_files import chunk_holders
from svc_files.chunk_holders import ChunkHoldersView, candidates

from .random_histories import FIRST, collect_some, commit, entries, operations_of  # noqa: TID252


def check(database: Database) -> None:
    def look(storage: ViewStorage) -> list[tuple[Path, bytes]]:
        return [
            (path, chunk)
            for path, entry in entries(database, database.head().root).items()
            if entry.kind is EntryKind.FILE
            for chunk, _ in database.at().chunks(entry)
            if path not in set(candidates(storage, chunk))
        ]

    assert database.view(chunk_holders.CHUNKS_VIEW).read(look) == []


def change(database: Database, random: Random) -> None:
    forks = dict(database.refs("forks"))
    step = random.random()
    with database.transaction() as transaction:
        if step < 0.1:
            root = random.choice(
                [database.commit(random.choice(database.available_commits())).root, *forks.values()]
            )
            transaction.set_ref("HEAD", root)
            return
        if step < 0.15:
            transaction.copy_ref("HEAD", f"forks/{len(forks)}")
            return
    if forks and step < 0.4:
        name = random.choice(list(forks))
        commit(database, operations_of(database, random, forks[name]), name)
    else:
        commit(database, operations_of(database, random))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32))
def test_every_file_is_found_by_its_chunks(fast_directory: FilePath, seed: int) -> None:
    random = Random(seed)
    path = FilePath(tempfile.mkdtemp(dir=fast_directory)) / "x.svcdb"
    with (
        patch.multiple(chunk_holders, _PER_STEP=2, _WORTH_KNOWING=1, _SMALL=1, _WORTH_COMPARING=2),
        patch("svc.database.views.TRANSACTION_SECONDS", 0.0),
    ):
        database = Database(path)
        reader = database.register_view(ChunkHoldersView())
        commit(database, [("put", one, number) for number, one in enumerate(FIRST)])
        for _ in range(random.randrange(3, 20)):
            change(database, random)
            if random.random() < 0.2:
                left = iter(range(random.randrange(4)))
                reader.catch_up(should_stop=lambda left=left: next(left, None) is None)  # type: ignore[misc]
                database.close()
                database = Database(path)
                reader = database.register_view(ChunkHoldersView())
            elif random.random() < 0.2:
                check(database)
            if random.random() < 0.1:
                collect_some(database, random)
            if random.random() < 0.2:
                reader.work(should_stop=lambda: True)
        check(database)
        while reader.work():
            pass
        check(database)
        reader.rebuild()
        check(database)
        database.close()
    shutil.rmtree(path.parent)
