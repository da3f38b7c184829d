"""What a repair could not save: exports name it, and go on without it only where they are told to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc.errors import CorruptRecord
from svc.plugin import Database
from svc.plugins import Plugins
from svc_backup.format import plan_export, plan_patch
from svc_maintenance.repair import repair
from svc_maintenance.verification import verify
from svc_testing import serve_in_process

from .conftest import HELD, Http, Source, fill  # noqa: TID252


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A database that lost a file of HEAD, a directory of HEAD, and a file that a snapshot has too."""
    path = tmp_path_factory.mktemp("lossy") / "x.svcdb"
    with Database(path) as database:
        source = fill(database)
        with database.transaction() as transaction:
            transaction.put(("gone", "below"), b"below a directory that is lost")
        with database.transaction() as transaction:
            transaction.set_ref("snapshots/one", database.head().root)
        head = database.at()
        lost = [head.get(("new",)).hash, head.get(("gone",)).hash]
        offsets = [database.objects.find(hash).offset for hash in lost]
    with path.open("r+b") as file:
        for offset in offsets:
            file.seek(offset + 65)
            file.write(b"rotten bytes")
    assert {one.path for one in repair(path).lost} == {"/new", "/gone"}
    return Source(database, source.first, head.root)


@pytest.fixture
def lost(lossy: Source, tmp_path: Path) -> Any:
    """A copy of it, opened."""
    path = tmp_path / "x.svcdb"
    shutil.copy(lossy.database.path, path)
    with Database(path) as database:
        yield Source(database, lossy.first, lossy.second)


@pytest.mark.parametrize("privileged", [False, True])
def test_an_export_names_what_is_lost(lost: Source, privileged: bool) -> None:
    with pytest.raises(CorruptRecord, match=r"/gone, /new.*without_lost") as refused:
        plan_export(lost.database, lost.second, system_paths=HELD if privileged else None)
    snapshot = ["/gone of snapshots/one", "/new of snapshots/one"] if privileged else []
    assert refused.value.details["paths"] == ["/gone", "/new", *snapshot]
    assert plan_export(lost.database, lost.first).counts.lost == ()


@pytest.mark.parametrize("privileged", [False, True])
def test_told_so_it_goes_on_without_and_says_what_is_missing(
    lost: Source, tmp_path: Path, privileged: bool
) -> None:
    system_paths = HELD if privileged else None
    with plan_export(lost.database, lost.second, system_paths=system_paths, without_lost=True) as outgoing:
        data = b"".join(outgoing.pieces())
        assert len(data) == outgoing.size
        assert outgoing.counts.lost[:2] == ("/gone", "/new")
    path = tmp_path / "exported.svcdb"
    path.write_bytes(data)
    kept = {path: entry.hash for path, entry in lost.database.at(lost.second).entries(())}
    kept = {name: hash for name, hash in kept.items() if name not in ("gone", "new")}
    with Database(path) as exported:
        report = verify(exported)
        assert report.ok
        assert report.lost == []
        assert {name: entry.hash for name, entry in exported.at().entries(())} == kept
        assert [name for name, _ in exported.refs()] == (["snapshots/one"] if privileged else [])
        for _, root in exported.refs():
            assert {name: entry.hash for name, entry in exported.at(root).entries(())} == kept


def test_a_patch_names_what_is_lost(lost: Source) -> None:
    with pytest.raises(CorruptRecord, match=r"/gone, /new.*write an export"):
        plan_patch(lost.database, lost.first, lost.second)


def test_the_command_names_it_with_7_and_goes_on_when_told(
    lost: Source, ready_here: Callable[[], None], run: Callable[..., Any], tmp_path: Path
) -> None:
    ready_here()
    output = tmp_path / "out.svcdb"
    ran = run("export", output, "-D", lost.database.path, check=7)
    assert "/gone, /new" in ran.err
    assert not output.exists()
    ran = run("export", output, "--without-lost", "--json", "-D", lost.database.path)
    assert ran.json["lost"] == ["/gone", "/new"]
    assert "Left out" in ran.err
    assert run("export", tmp_path / "p", "--since", "snapshots/one", "--without-lost", check=2)


@pytest.fixture
def ready_here(lost: Source) -> Callable[[], None]:
    from svc.plugins import initialize
    from svc_testing import load_with_testing_auth

    return lambda: initialize(lost.database, load_with_testing_auth("backup"))


def test_the_route_names_it_and_goes_on_when_told(lossy: Source, tmp_path: Path, plugins: Plugins) -> None:
    path = tmp_path / "served.svcdb"
    shutil.copy(lossy.database.path, path)
    with serve_in_process(path, plugins) as (app, database, mode):
        http = Http(app, database, mode)
        refused = http.post("/versions/export")
        assert refused.status_code == 500
        assert refused.json["paths"] == ["/gone", "/new"]
        answer = http.post("/versions/export", params={"without_lost": "true"})
        assert answer.status_code == 200
        assert b'"lost":["/gone","/new"],"lost_paths":2' in answer.headers["X-Svc-Report"].encode()
        report = http.post("/versions/export", {"without_lost": True, "output": "./backups/a.svcdb"})
        assert report.json["lost"] == ["/gone", "/new"]
