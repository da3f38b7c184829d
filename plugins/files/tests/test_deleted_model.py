"""What counts as deleted, against a model that keeps every path of every tree."""

from __future__ import annotations

import shutil
import tempfile
from itertools import islice
from pathlib import Path as FilePath
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.plugin import Database, Entry, EntryKind, Path
from svc_files import deleted_view
from svc_files.deleted_view import DeletedFile, DeletedFilesView, deleted_file, search_below

from .random_histories import FIRST, collect_some, commit, entries, operations_of  # noqa: TID252

Row = tuple[int, bytes, Entry]


def model(database: Database) -> dict[Path, Row]:
    """What was deleted since the horizon, replayed from the operations with all paths of the trees."""
    rows: dict[Path, Row] = {}
    for one in database.commits(after=database.horizon()):
        before, after = entries(database, one.parent_root), entries(database, one.root)

        def delete(path: Path, one: Any = one, before: dict[Path, Entry] = before) -> None:
            if before[path].kind is not EntryKind.DIRECTORY:
                rows[path] = (one.time_ms, one.parent_root, before[path])

        changes = [c for t in one.transactions if t.ref == "HEAD" for c in t.changes if not c.system]
        for change in changes if one.root != one.parent_root else []:
            if change.kind == "ref":
                for path in before.keys() - after.keys():
                    delete(path)
                for path in after:
                    rows.pop(path, None)
            elif change.kind == "delete":
                for path in before:
                    if path[: len(change.path)] == change.path:
                        delete(path)
            else:
                rows.pop(change.path, None)
                parent = change.path[:-1]
                while parent and (parent not in before or before[parent].kind is not EntryKind.DIRECTORY):
                    rows.pop(parent, None)
                    parent = parent[:-1]
                for path in list(rows):
                    if path[: len(change.path)] == change.path and path in after and change.kind != "mkdir":
                        del rows[path]
    present = entries(database, database.head().root)
    return {path: row for path, row in rows.items() if path not in present}


def rows_of(looked_at: list[tuple[Path, DeletedFile | None]]) -> dict[Path, Row]:
    assert [path for path, _ in looked_at] == sorted(path for path, _ in looked_at)
    return {path: (gone.deleted_ms, gone.root, gone.entry) for path, gone in looked_at if gone is not None}


def listed(database: Database, *arguments: Any, **more: Any) -> dict[Path, Row]:
    return rows_of(list(search_below(database, *arguments, **more)))


def page_by_page(database: Database, size: int) -> dict[Path, Row]:
    rows: dict[Path, Row] = {}
    after: Path | None = None
    while looked_at := list(islice(search_below(database, (), after=after), size)):
        rows |= rows_of(looked_at)
        assert after is None or looked_at[-1][0] > after
        after = looked_at[-1][0]
    return rows


def check(database: Database) -> None:
    expected = model(database)
    assert listed(database, ()) == expected
    assert page_by_page(database, 2) == expected
    for path in [*expected, *entries(database, database.head().root), ("a",), ("a", "b"), ("b", "c", "a")]:
        found = deleted_file(database, path)
        assert (found and (found.deleted_ms, found.root, found.entry)) == expected.get(path)
        below = {other: row for other, row in expected.items() if other[: len(path)] == path != other}
        assert listed(database, path) == below
        assert listed(database, (), after=path) == {
            other: row for other, row in expected.items() if other > path
        }
        for depth in (0, 1):
            near = {other: row for other, row in below.items() if len(other) <= len(path) + depth + 1}
            assert listed(database, path, depth=depth) == near


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32))
def test_what_is_listed_is_what_the_model_says(fast_directory: FilePath, seed: int) -> None:
    random = Random(seed)
    path = FilePath(tempfile.mkdtemp(dir=fast_directory)) / "x.svcdb"
    with (
        patch.object(deleted_view, "_CHANGES_PER_STEP", 2),
        patch("svc.database.views.TRANSACTION_SECONDS", 0.0),
    ):
        database = Database(path)
        reader = database.register_view(DeletedFilesView())
        commit(database, [("put", one, 1) for one in FIRST])
        for _ in range(random.randrange(3, 25)):
            step = random.random()
            if step < 0.05:
                with database.transaction() as transaction:
                    number = random.choice(database.available_commits())
                    transaction.set_ref("HEAD", database.commit(number).root)
            elif step < 0.15:
                check(database)
            elif step < 0.17:
                reader.rebuild()
            elif step < 0.24:
                collect_some(database, random)
            elif step < 0.3:
                reader.work(should_stop=lambda: True)
            elif step < 0.38:
                left = iter(range(random.randrange(4)))
                reader.catch_up(should_stop=lambda left=left: next(left, None) is None)  # type: ignore[misc]
                database.close()
                database = Database(path)
                reader = database.register_view(DeletedFilesView())
            else:
                commit(database, operations_of(database, random))
        check(database)
        while reader.work():
            pass
        check(database)
        reader.rebuild()
        check(database)
        database.close()
    shutil.rmtree(path.parent)
