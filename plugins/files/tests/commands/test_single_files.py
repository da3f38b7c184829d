"""put, get, cat and rm: the same against a database file and against a server."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc.errors import CorruptRecord, ServiceUnavailable
from svc_files.client.local import LocalStore

Run = Callable[..., Any]


def test_what_is_put_is_got_and_shown(run: Run, database: str, top: str, tmp_path: Path) -> None:
    content = os.urandom(700_000)
    (tmp_path / "in").write_bytes(content)
    stored = run("put", tmp_path / "in", f"{top}/a/b.bin", "-D", database, "--json").json
    assert (stored["size"], stored["created"], stored["path"]) == (700_000, True, f"{top}/a/b.bin")
    run("get", f"{top}/a/b.bin", tmp_path / "out", "-D", database)
    assert (tmp_path / "out").read_bytes() == content
    assert run("cat", f"{top}/a/b.bin", f"{top}/a/b.bin", "-D", database).out == content * 2
    assert run("get", f"{top}/a/b.bin", "-", "-D", database).out == content


def test_standard_input_of_unknown_length_is_stored(run: Run, database: str, top: str) -> None:
    run("put", "-", f"{top}/x", "-D", database, "--content-type", "text/csv", stdin=b"a,b\n")
    [item] = run("ls", f"{top}/x", "-D", database, "--json").lines
    assert (item["content_type"], item["size"]) == ("text/csv", 4)


@pytest.mark.parametrize("file", ["/proc/version", "empty"])
def test_a_file_of_no_stated_size_is_stored_to_its_end(
    run: Run, database: str, top: str, tmp_path: Path, file: str
) -> None:
    (tmp_path / "empty").touch()
    source = tmp_path / file
    assert source.stat().st_size == 0
    stored = run("put", source, f"{top}/x", "-D", database, "--json").json
    content = source.read_bytes()
    assert stored["size"] == len(content)
    assert run("cat", f"{top}/x", "-D", database).out == content


def test_an_empty_name_in_the_environment_is_no_database(
    run: Run, top: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("put", "-", f"{top}/x", stdin=b"kept")
    monkeypatch.setenv("SVC_DATABASE", "")
    for words in (("rm", f"{top}/x"), ("put", "-", f"{top}/x"), ("load", tmp_path), ("ls",)):
        assert "--database is empty" in run(*words, check=2).err
    assert run("cat", f"{top}/x", "-D", "data.svcdb").out == b"kept"


def test_a_directory_as_path_takes_the_name_of_the_file(
    run: Run, database: str, top: str, tmp_path: Path
) -> None:
    (tmp_path / "name.txt").write_text("x")
    run("put", tmp_path / "name.txt", f"{top}/dir/", "-D", database)
    run("put", tmp_path / "name.txt", f"{top}", "-D", database)
    assert run("ls", top, "-D", database).text.split() == ["dir/", "name.txt"]


def test_conditions_guard_against_lost_updates(run: Run, database: str, top: str) -> None:
    path = f"{top}/counter"
    first = run("put", "-", path, "-D", database, "--create-only", "--json", stdin=b"1").json
    run("put", "-", path, "-D", database, "--create-only", stdin=b"2", check=4)
    run("put", "-", path, "-D", database, "--if-match", first["content_hash"], stdin=b"2")
    refused = run("put", "-", path, "-D", database, "--if-match", first["content_hash"], stdin=b"3", check=4)
    assert refused.err.startswith("svc: ")
    run("rm", path, "-D", database, "--if-match", first["content_hash"], check=4)
    assert run("cat", path, "-D", database).out == b"2"


@pytest.mark.parametrize(
    ("given", "expected"),
    [("2-4", b"234"), ("7-", b"789"), ("-2", b"89"), ("0-999", b"0123456789"), ("-99", b"0123456789")],
)
def test_ranges(run: Run, database: str, top: str, given: str, expected: bytes) -> None:
    run("put", "-", f"{top}/f", "-D", database, stdin=b"0123456789")
    assert run("get", f"{top}/f", "-", "--range", given, "-D", database).out == expected


def test_ranges_that_hold_no_byte_or_are_none(run: Run, database: str, top: str, tmp_path: Path) -> None:
    run("put", "-", f"{top}/f", "-D", database, stdin=b"0123456789")
    for given in ("10-", "-0", "5-3", "x"):
        run("get", f"{top}/f", tmp_path / "o", "--range", given, "-D", database, check=2)
    assert not (tmp_path / "o").exists()


def test_a_get_that_was_cut_off_goes_on(run: Run, database: str, top: str, tmp_path: Path) -> None:
    content = os.urandom(500_000)
    (tmp_path / "in").write_bytes(content)
    stored = run("put", tmp_path / "in", f"{top}/f", "-D", database, "--json").json
    partial = tmp_path / f".out.{stored['content_hash'][:16]}.part"
    partial.write_bytes(content[:300_000])
    got = run("get", f"{top}/f", tmp_path / "out", "-C", "-D", database, "--json").json
    assert got["bytes_transferred"] == 200_000
    assert (tmp_path / "out").read_bytes() == content
    assert not partial.exists()


def test_a_damaged_part_is_thrown_away_and_never_becomes_the_file(
    run: Run, database: str, top: str, tmp_path: Path
) -> None:
    run("put", "-", f"{top}/f", "-D", database, stdin=b"the right bytes")
    stored = run("ls", f"{top}/f", "-D", database, "--json").lines[0]
    partial = tmp_path / f".out.{stored['hash'][:16]}.part"
    partial.write_bytes(b"the wrong")
    run("get", f"{top}/f", tmp_path / "out", "-C", "-D", database, check=7)
    assert not (tmp_path / "out").exists()
    assert not partial.exists()
    run("get", f"{top}/f", tmp_path / "out", "-C", "-D", database)
    assert (tmp_path / "out").read_bytes() == b"the right bytes"


@pytest.mark.parametrize("words", [["cat", "/f"], ["ls", "-R", "/"]])
def test_a_reader_that_has_enough_ends_the_command_quietly(
    run: Run, tmp_path: Path, words: list[str]
) -> None:
    database = tmp_path / "data.svcdb"
    (tmp_path / "f").write_bytes(os.urandom(2_000_000))
    (tmp_path / "names").mkdir()
    for index in range(3_000):
        (tmp_path / "names" / f"a-rather-long-name-of-a-file-{index}").touch()
    run("put", tmp_path / "f", "/f", "-D", database)
    run("load", tmp_path / "names", "-D", database)
    program = [sys.executable, "-c", "from svc_cli import main; main()", *words, "-D", str(database)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=20) == 141


def test_keep_times_goes_both_ways(run: Run, database: str, top: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("x")
    os.utime(tmp_path / "in", ns=(0, 1_500_000_000_123_000_000))
    run("put", tmp_path / "in", f"{top}/f", "-D", database, "--keep-times")
    run("get", f"{top}/f", tmp_path / "out", "-D", database, "--keep-times")
    assert (tmp_path / "out").stat().st_mtime_ns == 1_500_000_000_123_000_000


def test_an_earlier_version_is_read_by_its_hash(run: Run, database: str, top: str) -> None:
    before = run("put", "-", f"{top}/f", "-D", database, "--json", stdin=b"old").json["version"]
    run("put", "-", f"{top}/f", "-D", database, stdin=b"new")
    assert run("cat", f"{top}/f", "-D", database, "--version", before).out == b"old"
    run("cat", f"{top}/f", "-D", database, "--version", "xyz", check=2)
    run("cat", f"{top}/f", "-D", database, "--version", hashlib.sha256(b"none").hexdigest(), check=3)
    run("cat", f"{top}/f", "-D", database, "--snapshot", "none", check=3)


def test_rm_removes_all_or_nothing(run: Run, database: str, top: str) -> None:
    for name in ("a", "b", "d/c"):
        run("put", "-", f"{top}/{name}", "-D", database, stdin=b"x")
    failed = run("rm", f"{top}/a", f"{top}/nope", "-D", database, check=3)
    assert f"{top}/nope" in failed.err
    run("rm", f"{top}/d", "-D", database, check=4)
    assert run("ls", top, "-D", database).text.split() == ["a", "b", "d/"]
    run("rm", "-r", "-f", f"{top}/a", f"{top}/d", f"{top}/nope", "-D", database)
    assert run("ls", top, "-D", database).text.split() == ["b"]
    run("rm", "-r", "/", "-D", database, check=2)


def test_what_is_not_there_is_named_in_every_command(
    run: Run, database: str, top: str, tmp_path: Path
) -> None:
    for words in (
        ["cat", f"{top}/no"],
        ["get", f"{top}/no", str(tmp_path / "o")],
        ["ls", f"{top}/no"],
        ["rm", f"{top}/no"],
    ):
        # A database file that is missing is not there either.
        assert "no" in run(*words, "-D", database, check=3).err
    assert list(tmp_path.glob("o*")) == []


def test_the_system_namespace_does_not_exist(run: Run, database: str, top: str) -> None:
    run("put", "-", f"{top}/f", "-D", database, stdin=b"x")
    for words in (["cat", "/.svc-system/x"], ["ls", "/.system"], ["rm", "-r", "/.svc-system"]):
        run(*words, "-D", database, check=3)
    run("put", "-", "/.svc-system/x", "-D", database, stdin=b"x", check=3)


def test_bad_paths_are_refused_before_anything_happens(run: Run, database: str) -> None:
    run("put", "-", "/a/../b", "-D", database, stdin=b"x", check=2)
    run("cat", "/line\nbreak", "-D", database, check=2)


def test_directories_are_no_files(run: Run, database: str, top: str, tmp_path: Path) -> None:
    run("put", "-", f"{top}/d/f", "-D", database, stdin=b"x")
    assert "svc ls" in run("cat", f"{top}/d", "-D", database, check=4).err
    run("put", "-", f"{top}/d", "-D", database, stdin=b"x", check=4)
    run("put", "-", f"{top}/d/f/below", "-D", database, stdin=b"x", check=4)
    assert "svc load" in run("put", tmp_path, f"{top}/e", "-D", database, check=2).err


def test_a_get_that_fails_leaves_nothing_unless_the_connection_was_lost(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "data.svcdb")
    run("put", "-", "/f", "-D", database, stdin=os.urandom(1_000))

    def failing(error: Exception) -> Any:
        def pieces(*_: Any, **__: Any) -> Any:
            yield b"some bytes"
            raise error

        return pieces

    monkeypatch.setattr(LocalStore, "read", failing(CorruptRecord("It is damaged.")))
    run("get", "/f", tmp_path / "out", "-D", database, check=7)
    assert list(tmp_path.glob(".out.*.part")) == []
    monkeypatch.setattr(LocalStore, "read", failing(ServiceUnavailable("The connection was lost.")))
    assert "--continue" in run("get", "/f", tmp_path / "out", "-D", database, check=8).err
    (partial,) = tmp_path.glob(".out.*.part")
    assert partial.read_bytes() == b"some bytes"
    monkeypatch.undo()
    run("get", "/f", tmp_path / "out", "-D", database, "--continue", check=7)  # they are not its bytes
    assert list(tmp_path.glob(".out.*.part")) == []
