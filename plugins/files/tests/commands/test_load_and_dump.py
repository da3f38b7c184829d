"""Trees in and out: equal afterwards, cheap the second time, and honest about what was left out."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.plugin import Database
from svc_files.commands import load
from svc_files.commands.loader import Loader

Run = Callable[..., Any]


def _snapshot(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        else:
            found[name] = "directory" if path.is_dir() else path.read_bytes()
    return found


def _times(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): path.lstat().st_mtime_ns for path in root.rglob("*") if not path.is_dir()
    }


def _root_of(run: Run, database: str, top: str) -> str:
    [item] = run("ls", "-d", top, "-D", database, "--json").lines
    return str(item["hash"])


def test_a_tree_comes_back_as_it_was(run: Run, database: str, top: str, tree: Path, tmp_path: Path) -> None:
    loaded = run("load", tree, top, "-D", database, "--keep-times", "--json").json
    assert (loaded["files"], loaded["links"], loaded["directories"]) == (5, 3, 1)
    assert loaded["problems"] == []
    run("dump", tmp_path / "out", top, "-D", database, "--keep-times")
    assert _snapshot(tmp_path / "out") == _snapshot(tree)
    assert _times(tmp_path / "out") == _times(tree)


def test_times_that_cannot_be_kept_hide_no_change(run: Run, database: str, top: str, tmp_path: Path) -> None:
    tree = tmp_path / "old"
    tree.mkdir()
    for seconds in (-86_400 * 365, -1):
        for text in ("one", "two"):
            (tree / "a").write_text(text)
            os.utime(tree / "a", (seconds, seconds))
            loaded = run("load", tree, f"{top}/old", "-D", database, "--keep-times", "--json").json
            assert loaded["problems"] == []
            assert "1970" in loaded["notes"][0]["reason"]
            assert run("cat", f"{top}/old/a", "-D", database).text == text
        assert (
            run("load", tree, f"{top}/old", "-D", database, "--keep-times", "--json").json["unchanged_files"]
            == 1
        )


def test_a_load_into_a_file_gives_way(
    run: Run, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Watched(Loader):
        def run(self, known: Any) -> None:
            seen.append(os.getpriority(os.PRIO_PROCESS, 0))
            super().run(known)

    monkeypatch.setattr(load, "Loader", Watched)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    run("load", tree, "-D", tmp_path / "x.svcdb")
    assert seen == [max(before, 10)]
    if os.geteuid() == 0:
        assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_a_dry_run_into_a_database_that_is_not_there_makes_none(run: Run, tree: Path, tmp_path: Path) -> None:
    planned = run("load", tree, "-D", tmp_path / "none.svcdb", "--dry-run")
    assert len(planned.text.splitlines()) >= 3
    assert "would load" in planned.err
    assert not list(tmp_path.glob("none*"))


def test_who_names_no_directory_is_told_that_the_root_holds_something(
    run: Run, tree: Path, tmp_path: Path
) -> None:
    database = tmp_path / "own.svcdb"
    hint = f"'svc load {tree} /{tree.name}' makes a directory of it"
    assert hint not in run("load", tree, "-D", database).err
    assert hint in run("load", tree, "-D", database).err
    assert hint not in run("load", tree, "/", "-D", database).err
    assert hint not in run("load", tree, "-D", database, "-q").err


def test_the_second_load_writes_nothing(run: Run, database: str, top: str, tree: Path) -> None:
    for options in ([], ["--keep-times"]):
        run("load", tree, top, "-D", database, *options)
        before = run("load", tree, top, "-D", database, *options, "--json").json
        again = run("load", tree, top, "-D", database, *options, "--json").json
        assert (again["files"], again["links"], again["directories"], again["removed"]) == (0, 0, 0, 0)
        assert again["unchanged_files"] == 5
        assert again["version"] == before["version"]


def test_equal_trees_have_equal_roots_in_any_order_and_any_database(
    run: Run, server: str, tree: Path, tmp_path: Path
) -> None:
    one, other = str(tmp_path / "one.svcdb"), str(tmp_path / "other.svcdb")
    run("load", tree, "/t", "-D", one, "--keep-times")
    for name in ("small.txt", "large.bin"):
        run("put", tree / name, f"/t/{name}", "-D", other)
    run("load", tree / "deep" / "er", "/elsewhere", "-D", other)
    run("load", tree, "/t", "-D", other, "--keep-times", "--jobs", 1)
    run("load", tree, "/equal/t", "-D", server, "--keep-times")
    # Links name absolute paths of the database, so only the tree at the same place is the same.
    assert _root_of(run, one, "/t") == _root_of(run, other, "/t")
    [item] = run("ls", "-d", "/equal/t/deep/er", "-D", server, "--json").lines
    assert item["hash"] == _root_of(run, one, "/t/deep/er")


def test_only_what_changed_is_sent(run: Run, database: str, top: str, tree: Path) -> None:
    run("load", tree, top, "-D", database, "--keep-times")
    (tree / "small.txt").write_text("HELLO\n")
    (tree / "deep" / "new").write_text("new")
    changed = run("load", tree, top, "-D", database, "--keep-times", "--json").json
    assert (changed["files"], changed["unchanged_files"]) == (2, 4)
    assert run("cat", f"{top}/small.txt", "-D", database).out == b"HELLO\n"


def test_checksum_finds_a_change_that_size_and_time_hide(
    run: Run, database: str, top: str, tree: Path
) -> None:
    run("load", tree, top, "-D", database, "--keep-times")
    status = (tree / "small.txt").stat()
    (tree / "small.txt").write_text("HELLO\n")
    os.utime(tree / "small.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run("load", tree, top, "-D", database, "--keep-times", "--json").json["files"] == 0
    assert run("load", tree, top, "-D", database, "--keep-times", "--checksum", "--json").json["files"] == 1


def test_without_delete_nothing_goes_with_it_the_mirror_is_exact(
    run: Run, database: str, top: str, tree: Path, tmp_path: Path
) -> None:
    run("load", tree, top, "-D", database)
    shutil.rmtree(tree / "deep")
    (tree / "nothing").unlink()
    (tree / "nothing").mkdir()
    (tree / "empty").rmdir()
    (tree / "empty").write_text("a file now")
    kept = run("load", tree, top, "-D", database, "--json", check=12).json
    assert {os.path.basename(problem["path"]) for problem in kept["problems"]} == {"nothing", "empty"}
    assert run("cat", f"{top}/deep/er/data", "-D", database).out
    planned = run("load", tree, top, "-D", database, "--delete", "--dry-run").text
    assert f"remove {top}/deep" in planned
    assert run("cat", f"{top}/deep/er/data", "-D", database).out
    run("load", tree, top, "-D", database, "--delete")
    run("dump", tmp_path / "out", top, "-D", database)
    assert _snapshot(tmp_path / "out") == _snapshot(tree)


def test_a_mirror_of_a_directory_that_became_empty(
    run: Run, database: str, top: str, tree: Path, tmp_path: Path
) -> None:
    run("load", tree, top, "-D", database, "--keep-times")
    shutil.rmtree(tree / "deep" / "er")
    (tree / "deep" / "er").mkdir()
    os.utime(tree / "deep" / "er", ns=(0, 10**18))
    run("load", tree, top, "-D", database, "--keep-times", "--delete")
    [item] = run("ls", "-d", f"{top}/deep/er", "-D", database, "--json").lines
    assert (item["file_count"], item["updated_at"]) == (0, 10**12)


def test_a_link_that_became_a_file_is_not_written_through(
    run: Run, database: str, top: str, tree: Path
) -> None:
    run("load", tree, top, "-D", database)
    (tree / "deep" / "up").unlink()
    (tree / "deep" / "up").write_text("a file of its own")
    run("load", tree, top, "-D", database)
    assert run("cat", f"{top}/small.txt", "-D", database).out == b"hello\n"
    assert run("cat", f"{top}/deep/up", "-D", database).out == b"a file of its own"


def test_what_cannot_be_stored_is_named_and_the_rest_is_loaded(
    run: Run, database: str, top: str, tree: Path
) -> None:
    with open(os.fsencode(tree) + b"/bad-\xff", "wb"):
        pass
    (tree / "con\ntrol").write_text("x")
    (tree / "leaves").symlink_to("/etc/passwd")
    os.mkfifo(tree / "fifo")
    loaded = run("load", tree, top, "-D", database, "--json", check=12).json
    assert loaded["files"] == 5
    assert {os.path.basename(problem["path"]) for problem in loaded["problems"]} == {
        "bad-\\xff",
        "con\\ntrol",
        "leaves",
    }
    assert [os.path.basename(note["path"]) for note in loaded["notes"]] == ["fifo"]
    spoken = run("load", tree, top, "-D", database, check=12).err
    assert "svc: left out:" in spoken and "svc: skipped:" in spoken and "3 items" in spoken


def test_files_that_vanish_or_cannot_be_read_are_named(
    run: Run, database: str, top: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_open = os.open

    def fails(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if str(path).endswith("small.txt") and not flags & os.O_CREAT:
            raise FileNotFoundError(2, "No such file or directory", path)
        if str(path).endswith("large.bin") and not flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", path)
        return really_open(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", fails)
    loaded = run("load", tree, top, "-D", database, "--json", check=12).json
    monkeypatch.undo()
    assert loaded["files"] == 3
    reasons = {os.path.basename(problem["path"]): problem["reason"] for problem in loaded["problems"]}
    assert "vanished" in reasons["small.txt"]
    assert "permission denied" in reasons["large.bin"]


def test_a_load_below_a_linked_directory_goes_where_the_link_leads(
    run: Run, database: str, top: str, tree: Path
) -> None:
    run("load", tree, top, "-D", database)
    run("load", tree / "deep" / "er", f"{top}/deep/dir/sub", "-D", database)
    assert run("ls", f"{top}/deep/er/sub", "-D", database).text == "data\n"


def test_a_file_where_the_tree_should_go(run: Run, database: str, top: str, tree: Path) -> None:
    run("put", tree / "small.txt", top, "-D", database)
    run("load", tree, top, "-D", database, check=4)
    run("load", tree, f"{top}/below", "-D", database, check=4)


def test_many_small_files_make_few_commits(run: Run, tmp_path: Path) -> None:
    draw = random.Random(7)
    for index in range(6_000):
        directory = tmp_path / "many" / str(index % 20)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"f{index}").write_bytes(draw.randbytes(20))
    database = tmp_path / "x.svcdb"
    run("load", tmp_path / "many", "-D", database)
    size = database.stat().st_size
    with Database(database, read_only=True) as opened:
        assert opened.totals().files == 6_000
        assert len(list(opened.commits())) <= 4
    run("load", tmp_path / "many", "/again", "-D", database)
    assert database.stat().st_size < size * 1.6


def test_the_database_inside_the_tree_is_not_loaded(run: Run, tree: Path) -> None:
    database = tree / "x.svcdb"
    run("load", tree, "-D", database)
    assert "x.svcdb" not in run("ls", "-D", database).text


def test_dump_refuses_a_directory_with_something_in_it(
    run: Run, database: str, top: str, tree: Path, tmp_path: Path
) -> None:
    run("load", tree, top, "-D", database)
    out = tmp_path / "out"
    out.mkdir()
    (out / "small.txt").write_text("mine")
    (out / "extra").write_text("extra")
    assert "not empty" in run("dump", out, top, "-D", database, check=4).err
    assert sorted(path.name for path in out.iterdir()) == ["extra", "small.txt"]
    merged = run("dump", out, top, "-D", database, "--merge", "--json", check=12).json
    assert [problem["path"] for problem in merged["problems"]] == [f"{top}/small.txt"]
    assert (out / "small.txt").read_text() == "mine"
    forced = run("dump", out, top, "-D", database, "--force", "--json").json
    assert (forced["files"], forced["unchanged_files"]) == (1, 4)
    (out / "extra").unlink()
    assert _snapshot(out) == _snapshot(tree)


def test_dump_writes_an_earlier_version(
    run: Run, database: str, top: str, tree: Path, tmp_path: Path
) -> None:
    before = _snapshot(tree)
    version = run("load", tree, top, "-D", database, "--json").json["version"]
    run("rm", "-r", f"{top}/deep", "-D", database)
    run("dump", tmp_path / "out", top, "-D", database, "--version", version)
    assert _snapshot(tmp_path / "out") == before


def test_links_out_of_what_is_dumped_are_named(
    run: Run, database: str, top: str, tree: Path, tmp_path: Path
) -> None:
    run("load", tree, top, "-D", database)
    dumped = run("dump", tmp_path / "out", f"{top}/deep", "-D", database, "--json", check=12).json
    assert [problem["path"] for problem in dumped["problems"]] == [f"{top}/deep/up"]
    assert os.readlink(tmp_path / "out" / "dir") == "er"


def test_dump_needs_a_directory_to_dump(
    run: Run, database: str, top: str, tree: Path, tmp_path: Path
) -> None:
    run("load", tree, top, "-D", database)
    run("dump", tmp_path / "out", f"{top}/small.txt", "-D", database, check=4)
    run("dump", tmp_path / "out", f"{top}/none", "-D", database, check=3)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Path]:
    """A file that a program appends to all the time."""
    path = tmp_path / "growing" / "big.log"
    path.parent.mkdir()
    path.write_bytes(b"x" * (24 << 20))
    program = "import sys\nwith open(sys.argv[1], 'ab', 0) as f:\n    while True: f.write(b'y')"
    with subprocess.Popen([sys.executable, "-c", program, str(path)]) as writer:
        size = path.stat().st_size
        while path.stat().st_size == size:
            time.sleep(0.001)
        yield path
        writer.kill()


def test_a_file_that_keeps_changing_is_named_and_not_said_to_be_loaded(
    run: Run, database: str, top: str, growing: Path
) -> None:
    (growing.parent / "still").write_text("still")
    loaded = run("load", growing.parent, top, "-D", database, "--json", check=12).json
    assert [problem["path"] for problem in loaded["problems"]] == [str(growing)]
    assert "changing" in loaded["problems"][0]["reason"]
    assert run("cat", f"{top}/still", "-D", database).text == "still"
    assert "kept changing" in run("put", growing, f"{top}/put", "-D", database, check=4).err


@pytest.mark.parametrize("size", [10, 200_000])
def test_a_file_that_changed_once_is_loaded_as_it_is_now(
    run: Run, database: str, top: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    tree = tmp_path / "once"
    tree.mkdir()
    (tree / "a").write_bytes(b"a" * size)
    read = os.read
    changed: list[bytes] = []

    def changing(descriptor: int, count: int) -> bytes:
        piece = read(descriptor, count)
        if piece.startswith(b"aaaa") and not changed:
            changed.append(b"b" * (size + 1))
            (tree / "a").write_bytes(changed[0])
        return piece

    monkeypatch.setattr(os, "read", changing)
    assert run("load", tree, f"{top}/once", "-D", database, "--json").json["problems"] == []
    monkeypatch.undo()
    assert run("cat", f"{top}/once/a", "-D", database).out == changed[0]


def test_an_encoding_becomes_the_charset_of_texts_alone(
    run: Run, database: str, top: str, tmp_path: Path
) -> None:
    tree = tmp_path / "old"
    tree.mkdir()
    (tree / "a.txt").write_bytes("Köln".encode("cp1252"))
    (tree / "large.csv").write_bytes(b"x" * 70_000 + ";Köln\r\n".encode("cp1252"))
    (tree / "none").write_bytes("Gruß aus Köln".encode("cp1252"))
    (tree / "utf8.txt").write_bytes(("x" * 5_000 + "Köln").encode())
    (tree / "marked.txt").write_bytes("Köln".encode("utf-16"))
    (tree / "photo.txt").write_bytes(bytes(range(256)))
    (tree / "bad.txt").write_bytes(b"K\x81ln")
    (tree / "data.json").write_bytes(b'"K\xf6ln"')
    run("load", tree, top, "-D", database)
    report = run("load", tree, top, "-D", database, "--encoding", "Windows-1252", "--json").json
    assert (report["files"], report["unchanged_files"]) == (3, 5)
    assert [note["path"].rpartition("/")[2] for note in report["notes"]] == ["bad.txt"]
    types = {item["name"]: item["content_type"] for item in run("ls", top, "-D", database, "--json").lines}
    assert {name for name, kind in types.items() if "charset" in kind} == {"a.txt", "large.csv", "none"}
    assert types["large.csv"] == "text/csv; charset=windows-1252"
    again = run("load", tree, top, "-D", database, "--encoding", "windows-1252", "--json").json
    assert (again["files"], again["unchanged_files"]) == (0, 8)


@pytest.mark.parametrize("name", ["zlib", "idna"])
def test_what_is_no_encoding_is_refused_before_anything_is_loaded(
    run: Run, database: str, top: str, tree: Path, name: str
) -> None:
    refused = run("load", tree, top, "-D", database, "--encoding", name, check=2)
    assert "no encoding of texts" in refused.err
