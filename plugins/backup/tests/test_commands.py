"""The commands, as the shell calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from svc.plugin import Database


@pytest.fixture
def path(ready) -> Path:
    return ready.database.path


def test_export_reports_what_it_wrote(run, ready, path: Path, tmp_path: Path) -> None:
    root = ready.database.head().root.hex()
    ran = run("export", "--database", path, "--output", tmp_path / "x.svcdb")
    assert ran.report["Files"] == "93"
    assert ran.report["Directories"] == "5"
    assert int(ran.report["Chunks"]) > 90
    assert ran.report["Version"] == root
    with Database(tmp_path / "x.svcdb") as exported:
        assert exported.head().root.hex() == root


@pytest.mark.parametrize("option", ["hash", "snapshot", "at"])
def test_an_older_version_can_be_exported(run, ready, path: Path, tmp_path: Path, option: str) -> None:
    value = ready.first.hex()
    if option == "snapshot":
        with ready.database.transaction() as transaction:
            transaction.set_ref("snapshots/monday", ready.first)
        value = "monday"
    elif option == "at":
        value = str(ready.database.commit(1).time_ms)
    ran = run("export", "-D", path, "-o", tmp_path / "x.svcdb", f"--{option}", value)
    assert ran.report["Version"] == ready.first.hex()
    assert ran.report["Links"] == "1"


def test_an_existing_output_is_never_overwritten(run, path: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.svcdb"
    output.write_text("precious")
    for words in (("export", "-o", output), ("diff", "--from", "HEAD", "-o", output)):
        ran = run(*words, "-D", path, check=4)
        assert "exists already" in ran.err
    assert output.read_text() == "precious"
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "elsewhere")
    run("export", "-D", path, "-o", dangling, check=4)
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_not_there_is_said(run, path: Path, tmp_path: Path) -> None:
    run("export", "-D", path, "-o", tmp_path / "x", "--snapshot", "none", check=3)
    run("export", "-D", path, "-o", tmp_path / "x", "--hash", "00" * 32, check=3)
    run("export", "-D", path, "-o", tmp_path / "x", "--hash", "zz", check=2)
    run("export", "-D", path, "-o", tmp_path / "no" / "x", check=3)
    run("export", "-D", tmp_path / "none.svcdb", "-o", tmp_path / "x", check=3)
    run("import", "-D", path, tmp_path / "none", check=3)
    run("import", "-D", path, tmp_path, check=2)
    run("import", "-D", path, check=2)
    run("promote", "-D", path, "--hash", "00" * 32, check=3)
    run("promote", "-D", path, "--hash", "zz", check=2)
    run("diff", "-D", path, "--from", "none", check=3)
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "none.svcdb").exists()


def test_diff_writes_a_patch_and_reports_it(run, ready, path: Path, tmp_path: Path) -> None:
    ran = run(
        "diff", "-D", path, "--from", ready.first.hex(), "--to", ready.second.hex(), "-o", tmp_path / "p"
    )
    assert ran.report["Files added"] == "2"
    assert ran.report["Files modified"] == "2"
    assert ran.report["Files deleted"] == "3"
    assert ran.report["From"] == ready.first.hex()
    assert ran.report["To"] == ready.second.hex()
    assert {"Chunks", "Directories"} <= set(ran.report)
    run("export", "-D", path, "--since", ready.first.hex(), "-o", tmp_path / "q")
    assert (tmp_path / "p").stat().st_size == (tmp_path / "q").stat().st_size


def test_diff_without_an_output_shows_the_lines_that_changed(run, ready, path: Path) -> None:
    ran = run("diff", "-D", path, "--from", ready.first.hex(), "/many", "--no-color")
    assert "-number 7" in ran.out
    assert "+changed" in ran.out
    counts = run("diff", "-D", path, "--from", ready.first.hex(), "--json").json
    assert counts["files_modified"] == 2


def test_import_reports_what_it_took(run, ready, path: Path, tmp_path: Path) -> None:
    run("export", "-D", path, "-o", tmp_path / "x.svcdb", "--hash", ready.first.hex())
    ran = run("import", "-D", path, "--file", tmp_path / "x.svcdb", "--promote")
    assert ran.report["Files"] == "93"
    assert ran.report["Directories"] == "5"
    assert ran.report["Deletions"] == "0"
    assert ran.report["Version"] == ready.first.hex()
    assert ran.report["HEAD promoted"] == "yes"
    assert int(ran.report["Entries"]) > int(ran.report["Chunks"]) > 90
    assert ready.database.head().root == ready.first


def test_import_and_promote_work_while_the_database_is_open_elsewhere(
    run, ready, path: Path, tmp_path: Path
) -> None:
    run("export", "-D", path, "-o", tmp_path / "x.svcdb", "--hash", ready.first.hex())
    before = ready.database.head().root
    assert run("import", "-D", path, tmp_path / "x.svcdb").report["HEAD promoted"] == "no"
    assert ready.database.head().root == before
    run("promote", "-D", path, "--hash", ready.first.hex())
    assert ready.database.head().root == ready.first


def test_a_patch_for_another_version_names_both_and_force(run, ready, path: Path, tmp_path: Path) -> None:
    run("diff", "-D", path, "--from", ready.first.hex(), "-o", tmp_path / "p")
    ran = run("import", "-D", path, tmp_path / "p", check=4)
    assert ready.first.hex() in ran.err
    assert ready.database.head().root.hex() in ran.err
    assert "--force" in ran.err
    assert run("import", "-D", path, tmp_path / "p", "--force", "--json").json["head_promoted"] is False


def test_a_chain_makes_a_database_in_one_command(run, ready, path: Path, tmp_path: Path) -> None:
    with ready.database.transaction() as transaction:
        transaction.put(("third",), b"3")
    head = ready.database.head().root.hex()
    run("export", "-D", path, "--hash", ready.first.hex(), "-o", tmp_path / "full")
    run("diff", "-D", path, "--from", ready.first.hex(), "--to", ready.second.hex(), "-o", tmp_path / "one")
    run("diff", "-D", path, "--from", ready.second.hex(), "-o", tmp_path / "two")
    restored = tmp_path / "elsewhere" / "restored.svcdb"
    restored.parent.mkdir()
    ran = run("import", "-D", restored, *(tmp_path / name for name in ("two", "full", "one")), "--json")
    assert ran.json["version_hash"] == head
    assert ran.json["backup_type"] == "chain"
    assert [one["backup_type"] for one in ran.json["files"]] == ["export", "patch", "patch"]
    assert os.listdir(restored.parent) == ["restored.svcdb"]
    assert run("info", "-D", restored, "--json").json["version"] == head
    run("verify", "-D", restored)


def test_a_chain_with_a_bad_file_makes_no_database(run, ready, path: Path, tmp_path: Path) -> None:
    run("export", "-D", path, "--hash", ready.first.hex(), "-o", tmp_path / "full")
    run("diff", "-D", path, "--from", ready.first.hex(), "-o", tmp_path / "one")
    data = bytearray((tmp_path / "one").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad").write_bytes(data)
    restored = tmp_path / "elsewhere" / "restored.svcdb"
    restored.parent.mkdir()
    run("import", "-D", restored, tmp_path / "full", tmp_path / "bad", check=7)
    assert os.listdir(restored.parent) == []
    before = ready.database.head().root
    run("import", "-D", path, tmp_path / "full", tmp_path / "bad", "--promote", check=7)
    assert ready.database.head().root == before


def test_a_restore_that_is_ended_leaves_nothing(ready, path: Path, tmp_path: Path, run) -> None:
    run("export", "-D", path, "-o", tmp_path / "full")
    restored = tmp_path / "elsewhere" / "restored.svcdb"
    restored.parent.mkdir()
    code = """
import os, signal, sys
from svc_backup.commands import import_files
from svc_cli import main
real = import_files.import_incoming
def ended(*arguments, **options):
    result = real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGTERM)
    return result
import_files.import_incoming = ended
main(sys.argv[1:])
"""
    words = [sys.executable, "-c", code, "import", "-D", str(restored), str(tmp_path / "full")]
    ended = subprocess.run(words, env={**os.environ, "SVC_PLUGINS": "backup"}, timeout=60)
    assert ended.returncode == 130
    assert os.listdir(restored.parent) == []


def test_a_chain_promotes_every_version_in_turn(run, ready, path: Path, tmp_path: Path) -> None:
    run("export", "-D", path, "--hash", ready.first.hex(), "-o", tmp_path / "full")
    run("diff", "-D", path, "--from", ready.first.hex(), "-o", tmp_path / "one")
    run("import", "-D", path, tmp_path / "full", tmp_path / "one", "--promote")
    roots = [commit.root for commit in ready.database.commits()]
    assert roots[-2:] == [ready.first, ready.second]
    assert list(ready.database.refs("imports")) == []


def test_an_export_can_be_listed_before_it_was_ever_started(run, ready, path: Path, tmp_path: Path) -> None:
    run("export", "-D", path, "-o", tmp_path / "x.svcdb")
    run("diff", "-D", tmp_path / "x.svcdb", "--from", "HEAD")
    run("export", "-D", tmp_path / "x.svcdb", "-o", tmp_path / "y.svcdb")
    with Database(tmp_path / "y.svcdb") as again:
        assert again.head().root == ready.database.head().root


def test_what_unpacks_to_too_much_needs_a_word(run, path: Path, tmp_path: Path, monkeypatch) -> None:
    from svc_backup.commands import import_files
    from svc_backup.format import IncomingLimits

    run("export", "-D", path, "-o", tmp_path / "x.svcdb")
    narrow = lambda expansion=1: IncomingLimits(expansion=expansion, least_content=0)  # noqa: E731
    monkeypatch.setattr(import_files, "IncomingLimits", narrow)
    assert "expansion" in run("import", "-D", path, tmp_path / "x.svcdb", check=7).err
    run("import", "-D", path, tmp_path / "x.svcdb", "--unlimited")


def test_errors_are_json_where_that_is_asked_for(run, path: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"PK\3\4 not ours")
    ran = run("import", "-D", path, tmp_path / "bad", "--json", check=6)
    assert '"code": "INVALID_INPUT"' in ran.err
    assert "bad is not an svc database" in ran.err


def test_a_place_that_takes_no_files_is_not_called_missing(run, path: Path, tmp_path: Path) -> None:
    for words in (("export",), ("diff", "--from", "HEAD")):
        ran = run(*words, "-D", path, "-o", "/proc/x.svcdb", check=5)
        assert "directory takes no files" in ran.err
        ran = run(*words, "-D", path, "-o", tmp_path / "none" / "x.svcdb", check=3)
        assert "its directory does not exist" in ran.err
        assert "is empty" in run(*words, "-D", path, "-o", "", check=2).err


def test_import_speaks_of_the_names_that_were_given(run, path: Path, tmp_path: Path) -> None:
    run("export", "-D", path, "-o", tmp_path / "x.svcdb")
    ran = run("import", tmp_path / "x.svcdb", "-D", tmp_path / "none" / "new.svcdb", check=3)
    assert "none/new.svcdb cannot be made" in ran.err
    ran = run("import", tmp_path / "x.svcdb", "-D", "/proc/new.svcdb", check=5)
    assert "/proc/new.svcdb" in ran.err
    assert "is empty" in run("import", "", "-D", path, check=2).err
    for given in ("", "ftp://127.0.0.1:6830"):
        assert "--database" in run("import", tmp_path / "x.svcdb", "-D", given, check=2).err


def test_versions_and_files_are_named_as_people_type_them(run, ready, path: Path, tmp_path: Path) -> None:
    first, second = ready.first.hex(), ready.second.hex()
    run("export", tmp_path / "x.svcdb", "-D", path, "--hash", first)
    wanted = run("diff", "--from", first, "--to", second, "/many", "-D", path).out
    assert "number 7" in wanted
    for words in (
        (first, second, "/many"),
        (first, "/many"),
        ("--from", first, "many"),
        (first, "--to", second, "/many"),
    ):
        assert run("diff", *words, "-D", path).out == wanted
    assert run("diff", first, second, "-D", path).out == run("diff", first, "-D", path).out
    assert run("diff", first, "-o", tmp_path / "p", "-D", path).report["To"] == second
    assert run("promote", first, "-D", path).report["HEAD"] == first


def test_what_is_typed_twice_or_not_at_all_is_said(run, path: Path, tmp_path: Path) -> None:
    for words, said in (
        (("diff",), "svc diff FROM"),
        (("diff", "a", "b", "c", "/d"), "'c' is more"),
        (("export",), "svc export FILE"),
        (("export", tmp_path / "x", "-o", tmp_path / "y"), "svc export FILE"),
        (("promote",), "svc promote HASH"),
    ):
        assert said in run(*words, "-D", path, check=2).err
