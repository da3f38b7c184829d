"""Exports and patches from below: any two trees, and the bytes of the format pages."""

from __future__ import annotations

import os
import re
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.errors import CorruptRecord
from svc.log import encode_void
from svc.log.scanning import scan_records
from svc.plugin import Database, EntryKind, ObjectKind
from svc.plugin import Path as TreePath
from svc.tree import walk_nodes
from svc_backup.format import (
    IncomingFile,
    apply_incoming,
    check_incoming,
    plan_export,
    plan_patch,
    read_header,
)
from svc_maintenance.transfer import LARGEST_CONTENT
from svc_maintenance.verification import verify

DOCS = Path(__file__).parents[3] / "docs" / "format"


def taken_in(database: Database, data: bytes) -> None:
    path = database.path.with_name(f"incoming-{uuid.uuid4()}")
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with IncomingFile(descriptor) as file:
            apply_incoming(database, check_incoming(file, database), promote=True)
    finally:
        os.close(descriptor)


def bytes_of(planned) -> bytes:
    with planned as outgoing:
        data = b"".join(outgoing.pieces())
        assert len(data) == outgoing.size
        return data


def reachable(database: Database, root: bytes) -> set[bytes]:
    found = set()
    for hash, node in walk_nodes(database.objects, root):
        found.add(hash)
        if node.level == 0:
            for named, is_record in node.contents():
                found.add(named)
                if is_record:
                    found.update(database.objects.read_record(named).chunks)
    return found


NAMES = st.sampled_from(["a", "b", "c", "dd"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
CONTENTS = st.one_of(
    st.binary(max_size=3), st.integers(0, 3).map(lambda seed: bytes([seed]) * 70_000), st.none()
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), PATHS, CONTENTS),
        st.tuples(st.just("many"), PATHS, st.integers(1, 90)),
        st.tuples(st.just("delete"), PATHS, st.none()),
        st.tuples(st.just("move"), PATHS, PATHS),
        st.tuples(st.just("copy"), PATHS, PATHS),
        st.tuples(st.just("mkdir"), PATHS, st.none()),
        st.tuples(st.just("link"), PATHS, st.none()),
    ),
    max_size=6,
)


def perform(database: Database, operations: list[tuple[str, TreePath, object]]) -> bytes:
    from svc.errors import SvcError

    for kind, path, value in operations:
        try:
            with database.transaction() as transaction:
                if kind == "put":
                    transaction.put(path, value if isinstance(value, bytes) else b"")
                elif kind == "many":
                    for number in range(int(str(value))):
                        transaction.put((*path, f"{number:02}"), b"%d" % number)
                elif kind == "delete":
                    transaction.delete(path, recursive=True)
                elif kind == "move":
                    transaction.move(path, value)
                elif kind == "copy":
                    transaction.copy(path, value)
                elif kind == "mkdir":
                    transaction.mkdir(path)
                else:
                    transaction.link(path, "/a/b")
        except SvcError:
            continue
    return database.head().root


@settings(max_examples=40)
@given(OPERATIONS, OPERATIONS)
def test_any_two_trees_are_an_export_and_a_patch_apart(tmp_path_factory, before, after) -> None:
    directory = tmp_path_factory.mktemp("pair")
    with Database(directory / "a.svcdb") as source, Database(directory / "b.svcdb") as copy:
        base = perform(source, before)
        target = perform(source, after)
        export = bytes_of(plan_export(source, base))
        patch = bytes_of(plan_patch(source, base, target))
        back = bytes_of(plan_patch(source, target, base))
        for data, root, known in ((export, base, set()), (patch, target, reachable(source, base))):
            held = {
                record.hash
                for record in scan_records(lambda at, size, d=data: d[at : at + size], 128, len(data))
                if record.kind in (ObjectKind.CHUNK, ObjectKind.FILE_RECORD, ObjectKind.NODE)
            }
            needed = reachable(source, root) - {_EMPTY}
            assert held <= needed
            assert needed - held <= known
            taken_in(copy, data)
            assert copy.head().root == root
        taken_in(copy, back)
        assert copy.head().root == base
        assert verify(copy).ok


_EMPTY = bytes.fromhex("acb0cee105477ea42fc780ddd0dee53cdc5ac028d2f1450e9ec60787cb5d9615")


def test_the_cost_of_a_patch_follows_what_changed(tmp_path: Path) -> None:
    """Ten changes among five thousand files: a handful of nodes, and not a chunk too much."""
    with Database(tmp_path / "a.svcdb") as source, Database(tmp_path / "b.svcdb") as copy:
        with source.transaction() as transaction:
            for number in range(5000):
                transaction.put(("d", f"{number:05}"), b"%d" % number)
        base = source.head().root
        with source.transaction() as transaction:
            for number in range(0, 5000, 500):
                transaction.put(("d", f"{number:05}"), b"changed %d" % number)
        target = source.head().root
        taken_in(copy, bytes_of(plan_export(source, base)))
        with plan_patch(source, base, target) as outgoing:
            assert outgoing.counts.chunks == 10
            assert outgoing.counts.directories == 2
            data = b"".join(outgoing.pieces())
        reads: list[bytes] = []
        real = copy.objects.read_node
        copy.objects.read_node = lambda hash: reads.append(hash) or real(hash)  # type: ignore[method-assign]
        taken_in(copy, data)
        assert len(reads) < 800, "what is known is looked at along its edges only"
        assert copy.head().root == target


def test_what_became_a_void_is_not_exported(tmp_path: Path) -> None:
    with Database(tmp_path / "a.svcdb") as source:
        with source.transaction() as transaction:
            transaction.put(("a",), b"content")
        with plan_export(source, source.head().root) as outgoing:
            place = source.objects.find(source.at().get(("a",)).hash)
            with open(source.path, "r+b") as file:
                file.seek(place.offset)
                file.write(encode_void(place.stored_length, time_ms=1))
            with pytest.raises(CorruptRecord):
                b"".join(outgoing.pieces())


# -- the format pages -------------------------------------------------------------------------------


def golden(name: str) -> bytes:
    return bytes.fromhex((DOCS / "golden" / f"{name}.hex").read_text())


def test_the_golden_export_and_patch_are_read(tmp_path: Path) -> None:
    with Database(tmp_path / "a.svcdb") as database:
        taken_in(database, golden("export"))
        version = database.at()
        assert version.read_all(version.get(("hello.txt",))) == b"hello\n"
        assert version.read_all(version.get(("docs", "note"))) == b"note"
        taken_in(database, golden("patch"))
        version = database.at()
        assert version.get(("docs",)) is None
        assert version.read_all(version.get(("new",))) == b"new"
        assert verify(database).ok


def test_the_golden_export_and_patch_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records keep their times on their way through a database, so the bytes come out again."""
    with Database(tmp_path / "a.svcdb") as database:
        taken_in(database, golden("export"))
        base = database.head().root
        taken_in(database, golden("patch"))
        target = database.head().root
        for name, plan in (
            ("export", lambda: plan_export(database, base)),
            ("patch", lambda: plan_patch(database, base, target)),
        ):
            data = golden(name)
            header = read_header(data[:128])
            monkeypatch.setattr(time, "time_ns", lambda at=header.created_ms: at * 1_000_000)
            monkeypatch.setattr(uuid, "uuid4", lambda id=header.database_id: uuid.UUID(bytes=id))
            written = bytes_of(plan())
            monkeypatch.undo()
            assert written == data, name


def test_the_golden_export_is_a_database(tmp_path: Path) -> None:
    path = tmp_path / "golden.svcdb"
    path.write_bytes(golden("export"))
    with Database(path, read_only=True) as database:
        assert database.head().sequence == 1
        assert [path for path, entry in database.at().walk() if entry.kind is EntryKind.FILE] == [
            ("docs", "note"),
            ("hello.txt",),
        ]


def test_the_format_page_states_the_limits() -> None:
    page = (DOCS / "export.md").read_text()
    stated = dict(re.findall(r"^\| ([a-z ]+) \| ([\d,]+) \|", page, re.MULTILINE))
    assert {name: int(size.replace(",", "")) for name, size in stated.items()} == {
        kind.name.lower().replace("_", " "): size for kind, size in LARGEST_CONTENT.items()
    }
