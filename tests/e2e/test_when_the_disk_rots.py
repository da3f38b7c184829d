"""The steps of "When the disk rots" in docs/operating.md, as they stand there; and a server as source."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from svc.database import Database
from svc.log import RECORD_HEADER_SIZE
from svc_testing import start_server
from svc_testing.processes import run_svc

OPERATING = Path(__file__).parents[2] / "docs" / "operating.md"
PLUGINS = ("files", "history", "versions", "backup", "auth.disabled")


def blocks() -> list[str]:
    section = OPERATING.read_text().partition("## When the disk rots\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.+?)\n```$", section, re.MULTILINE | re.DOTALL)


def shell(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-ec", command],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        env={
            **os.environ,
            "SVC_PLUGINS": ",".join(PLUGINS),
            "PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])),
        },
        check=False,
    )


def rot(path: Path, *names: tuple[str, ...]) -> None:
    """Changes bytes of the only chunks of some files."""
    with Database(path, read_only=True) as database:
        version = database.at()
        places = [database.objects.find(version.get(name).hash) for name in names]
    with open(path, "r+b") as file:
        for place in places:
            file.seek(place.offset + RECORD_HEADER_SIZE + 3)
            file.write(b"rotten!")


def store(path: Path, **contents: bytes) -> None:
    with Database(path, create=False) as database, database.transaction() as transaction:
        for name, content in contents.items():
            transaction.put(("docs", name), content)


def test_the_steps_of_the_manual(tmp_path: Path) -> None:
    look, put, repair, look_again = blocks()
    file = tmp_path / "files.svcdb"
    report = b"the report " * 30
    (tmp_path / "report.pdf").write_bytes(report)
    assert shell("svc put report.pdf /docs/report.pdf -D files.svcdb", tmp_path).returncode == 0
    store(file, saved=b"in the backup" * 9, twice=b"twice" * 40)
    shutil.copy(file, tmp_path / "backup.svcdb")
    store(file, nowhere=b"nowhere else" * 9)
    root = head(file)
    rot(file, ("docs", "report.pdf"), ("docs", "saved"), ("docs", "nowhere"))
    told = shell(look, tmp_path)
    assert told.returncode == 7
    for name in ("report.pdf", "saved", "nowhere"):
        assert f"/docs/{name} A chunk of the file is damaged." in told.stdout
    assert "/docs/twice" not in told.stdout
    assert shell(put, tmp_path).returncode == 0
    assert content_of(file, "report.pdf") == report
    told = shell(repair, tmp_path)
    assert told.returncode == 7
    assert re.findall(r"^Lost: (\S+)", told.stdout, re.MULTILINE) == ["/docs/nowhere"]
    told = shell(look_again, tmp_path)
    assert told.returncode == 7, "what was lost is still needed"
    assert "Lost before: /docs/nowhere" in told.stdout
    assert content_of(file, "saved") == b"in the backup" * 9
    assert head(file) != root, "the report was stored again"
    assert (tmp_path / "files.svcdb.repaired-1").exists()
    with Database(file, read_only=True) as database:
        assert database.at().get(("docs", "nowhere")).size == len(b"nowhere else" * 9)
    assert shell("svc rm /docs/nowhere -D files.svcdb", tmp_path).returncode == 0
    told = shell(look_again, tmp_path)
    assert told.returncode == 0
    assert "Nothing is damaged" in told.stdout


def head(path: Path) -> bytes:
    with Database(path, read_only=True) as database:
        return database.head().root


def content_of(path: Path, name: str) -> bytes:
    with Database(path, read_only=True) as database:
        return database.at().read_all(database.at().get(("docs", name)))


@pytest.mark.parametrize("options", ["", "--keep-times", "--delete --jobs 2"])
def test_what_was_lost_comes_back_with_the_directory_that_it_came_from(tmp_path: Path, options: str) -> None:
    file = tmp_path / "x.svcdb"
    source = tmp_path / "docs"
    source.mkdir()
    for name in ("whole", "lost"):
        (source / name).write_bytes(name.encode() * 300)
    load = f"svc load docs /docs {options} -D x.svcdb --json"
    assert shell(load, tmp_path).returncode == 0
    rot(file, ("docs", "lost"))
    assert shell("svc verify --repair -D x.svcdb", tmp_path).returncode == 7
    told = json.loads(shell(load, tmp_path).stdout)
    assert (told["files"], told["unchanged_files"]) == (1, 1)
    assert content_of(file, "lost") == b"lost" * 300
    assert shell("svc verify -D x.svcdb", tmp_path).returncode == 0
    assert json.loads(shell(load, tmp_path).stdout)["unchanged_files"] == 2


def test_a_server_gives_what_is_damaged_here(tmp_path: Path) -> None:
    """Chunks of its HEAD one by one; directories and what only older versions have by an export."""
    path, other = tmp_path / "x.svcdb", tmp_path / "other.svcdb"
    shell("echo kept > kept; svc put kept /docs/kept -D x.svcdb", tmp_path)
    store(path, a=b"a" * 900, old=b"old" * 300)
    store(path, old=b"new" * 300)
    root = head(path)
    shutil.copy(path, other)
    with Database(path, read_only=True) as database:
        node = database.objects.find(database.at().get(("docs",)).hash)
        first = database.version_of(database.commit(database.head().sequence - 1).root)
        old = database.objects.find(first.get(("docs", "old")).hash)
    rot(path, ("docs", "a"))
    with open(path, "r+b") as file:
        for place in (node, old):
            file.seek(place.offset + RECORD_HEADER_SIZE + 5)
            file.write(b"rotten!")
    with start_server(other, "--auth", "disabled", plugins=PLUGINS) as server:
        told = run_svc("verify", "--repair", "--from", server.url, "-D", str(path))
    assert told.exit_code == 0, told.stdout + told.stderr
    assert head(path) == root
    with Database(path, read_only=True) as database:
        assert database.at().read_all(database.at().get(("docs", "a"))) == b"a" * 900
        sequence = next(one.sequence for one in database.commits() if len(one.transactions[0].changes) == 2)
        older = database.version_of(database.commit(sequence).root)
        assert older.read_all(older.get(("docs", "old"))) == b"old" * 300


def test_a_damaged_commit_degrades_a_server_from_the_verification_to_the_repair(tmp_path: Path) -> None:
    path = tmp_path / "x.svcdb"
    shell("echo kept > kept; svc put kept /docs/kept -D x.svcdb", tmp_path)
    store(path, a=b"a" * 900)
    store(path, b=b"b" * 900)
    shutil.copy(path, tmp_path / "backup.svcdb")
    with Database(path, read_only=True) as database:
        sequence = database.head().sequence - 1
        place = database.objects.index.commit_place(sequence)
    with open(path, "r+b") as file:
        file.seek(place[0] + RECORD_HEADER_SIZE + 60)
        file.write(b"rotten!")
    with start_server(path, "--auth", "disabled", plugins=PLUGINS) as server:
        assert server.get("/system/health").json()["status"] == "healthy"
        assert run_svc("verify", "-D", str(path)).exit_code == 7
        health = server.get("/system/health").json()
        assert health["status"] == "degraded"
        (told,) = health["findings"]
        assert told["code"] == "database.damaged_commits"
        assert f"of commit {sequence}." in told["message"]
        assert run_svc("status", "-D", str(path)).exit_code == 13
        assert run_svc("status", "--url", server.url).exit_code == 13
    assert (
        run_svc("verify", "--repair", "--from", "backup.svcdb", "-D", str(path), cwd=tmp_path).exit_code == 0
    )
    with start_server(path, "--auth", "disabled", plugins=PLUGINS) as server:
        assert server.get("/system/health").json()["status"] == "healthy"
