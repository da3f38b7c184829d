"""Exports, patches and promotions of versions that were collected, or are while somebody reads."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from svc.errors import VersionCollected
from svc.plugin import Database, collect
from svc_backup.format import plan_export, plan_patch
from svc_maintenance.verification import verify
from svc_testing import simulate_collection


def contents(database: Database) -> dict[str, bytes]:
    version = database.at()
    return {"/".join(path): version.read_all(entry) for path, entry in version.walk(files_only=True)}


@pytest.fixture
def old(http: Any) -> str:
    """A version of the server's database that was collected."""
    with http.database.transaction() as transaction:
        transaction.put(("a",), b"one" * 1000)
    root: str = http.database.head().root.hex()
    with http.database.transaction() as transaction:
        transaction.put(("a",), b"two" * 1000)
    simulate_collection(http.database)
    return root


@pytest.mark.parametrize(
    ("route", "body", "query"),
    [
        ("export", {"version": "{old}"}, ""),
        ("export", None, "version={old}"),
        ("diff", {"from": "{old}"}, ""),
        ("diff", {"from": "HEAD", "to": "{old}"}, ""),
        ("promote", {"hash": "{old}"}, ""),
    ],
)
def test_what_names_a_collected_version_says_so(
    http: Any, old: str, route: str, body: dict[str, str] | None, query: str
) -> None:
    named = None if body is None else {name: value.format(old=old) for name, value in body.items()}
    answer = http.post(f"/versions/{route}", named, query_string=query.format(old=old))
    assert (answer.status_code, answer.json["code"]) == (404, "NOT_FOUND"), answer.text
    assert answer.json["collected"] is True


def test_an_export_that_has_begun_is_whole_however_slowly_it_is_read(
    target: Database, tmp_path: Path
) -> None:
    with target.transaction() as transaction:
        for number in range(50):
            transaction.put(("old", str(number)), b"%d" % number * 50_000)
    root, expected = target.head().root, contents(target)
    with target.transaction() as transaction:
        transaction.delete(("old",), recursive=True)
    with plan_export(target, root) as outgoing:
        pieces = outgoing.pieces()
        copy = io.BytesIO(next(pieces))
        copy.seek(0, io.SEEK_END)
        assert collect(target, wait_seconds=0.05).waiting is not None
        with pytest.raises(VersionCollected):
            plan_patch(target, root, target.head().root)
        for piece in pieces:
            copy.write(piece)
    assert collect(target, wait_seconds=0.05).reclaimed_bytes > 0
    (tmp_path / "copy.svcdb").write_bytes(copy.getvalue())
    with Database(tmp_path / "copy.svcdb") as exported:
        assert contents(exported) == expected
        assert verify(exported).ok


def test_a_version_that_was_collected_comes_back_with_its_export(target: Database, take_in: Any) -> None:
    with target.transaction() as transaction:
        transaction.put(("a",), b"one" * 1000)
    root = target.head().root
    with plan_export(target, root) as outgoing:
        export = b"".join(outgoing.pieces())
    with target.transaction() as transaction:
        transaction.put(("a",), b"two" * 1000)
    collect(target, upload_hours=0)
    assert not target.is_available(root)
    take_in(target, export)
    assert target.is_available(root)
    collect(target, upload_hours=0)
    assert target.at(root).read_all(target.at(root).get(("a",))) == b"one" * 1000
    assert verify(target).ok
