"""Lists of snapshots and forks are read again where something has changed, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.plugin import Database
from svc_versions.forks import create_fork, list_forks
from svc_versions.named_refs import NamedRef
from svc_versions.snapshots import create_snapshot, delete_snapshot, list_snapshots, rename_snapshot


def test_a_list_follows_every_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = NamedRef._documents.__func__  # type: ignore[attr-defined]
    counted = classmethod(lambda cls, system: (reads.append(cls.prefix), read(cls, system))[1])
    monkeypatch.setattr(NamedRef, "_documents", counted)
    with Database(tmp_path / "a.svcdb") as database, Database(tmp_path / "b.svcdb") as other:
        for number in range(3):
            with database.transaction() as changes:
                changes.put(("a",), b"%d" % number)
            create_snapshot(database, f"s{number}")
        create_fork(database, "f")
        names = lambda: [one.name for one in list_snapshots(database)]  # noqa: E731
        assert names() == names() == ["s2", "s1", "s0"]
        assert list_snapshots(other) == []
        assert [one.name for one in list_forks(database)] == ["f"]
        found = list_snapshots(database)
        found.clear()
        assert len(names()) == 3
        reads.clear()
        with database.transaction() as changes:
            changes.put(("b",), b"no snapshot")
        assert len(names()) == 3
        assert reads == []
        delete_snapshot(database, "s1")
        assert names() == ["s2", "s0"]
        rename_snapshot(database, "s0", "t0")
        assert names() == ["s2", "t0"]
        assert reads == ["snapshots", "snapshots"]
        with database.transaction() as changes:
            changes.set_ref("snapshots/foreign", database.head().root)  # by another program: no document
        assert sorted(names()) == ["foreign", "s2", "t0"]
