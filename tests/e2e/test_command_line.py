"""The commands for people, against a database file and against the URL of a server.

Two tests start ``svc`` as a shell does; the others run it in forks of a process that has imported it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server
from svc_blackbox.server import run_svc as start_svc

PLACES = ["file", "url"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("commands") / "served.svcdb", "--workers", "1").start()
    yield server
    server.close()


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """What ``-D`` names: a database file, or a server; nothing is in it."""
    if request.param == "url":
        url = request.getfixturevalue("served").url
        yield url
        for line in run_svc("ls", "-D", url, "--json", "/").stdout.splitlines():
            run_svc("rm", "-D", url, "-r", json.loads(line)["path"])
        return
    database = tmp_path / "local.svcdb"
    (tmp_path / "nothing").mkdir()
    run_svc("load", "-D", database, tmp_path / "nothing")
    yield str(database)


def test_put_cat_get_ls_rm(place: str, tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(os.urandom(300_000))
    start_svc("put", "-D", place, source, "/dir/a.bin")
    start_svc("put", "-D", place, "-", "/dir/note.txt", stdin="häß\n".encode())
    assert start_svc("cat", "-D", place, "/dir/a.bin").stdout == source.read_bytes()
    assert start_svc("cat", "-D", place, "/dir/note.txt", "/dir/note.txt").stdout == "häß\n".encode() * 2
    start_svc("get", "-D", place, "/dir/a.bin", tmp_path / "copy.bin")
    assert (tmp_path / "copy.bin").read_bytes() == source.read_bytes()
    part = start_svc("get", "-D", place, "--range", "2-5", "/dir/a.bin", "-").stdout
    assert part == source.read_bytes()[2:6]
    assert start_svc("ls", "-D", place, "/dir").stdout.split() == [b"a.bin", b"note.txt"]
    items = [json.loads(line) for line in start_svc("ls", "-D", place, "--json", "/dir").stdout.splitlines()]
    assert [(item["path"], item["size"]) for item in items] == [("/dir/a.bin", 300_000), ("/dir/note.txt", 6)]
    start_svc("rm", "-D", place, "/dir/a.bin")
    assert start_svc("ls", "-D", place, "/dir").stdout.split() == [b"note.txt"]
    assert start_svc("rm", "-D", place, "/dir", check=False).returncode == 4
    start_svc("rm", "-D", place, "-r", "/dir")
    assert start_svc("ls", "-D", place, "/").stdout == b""


def test_what_is_missing_exits_3_and_says_so(place: str, tmp_path: Path) -> None:
    for command in (
        ["cat", "/nothing"],
        ["get", "/nothing", str(tmp_path / "x")],
        ["ls", "/no/dir"],
        ["rm", "/nothing"],
    ):
        result = run_svc(command[0], "-D", place, *command[1:], check=False)
        assert result.returncode == 3, (command, result)
        assert result.stderr.startswith(b"svc: ")
        assert b"Traceback" not in result.stderr
    assert not (tmp_path / "x").exists()
    result = run_svc("ls", "-D", place, "--json", "/no/dir", check=False)
    assert json.loads(result.stderr)["code"] == "NOT_FOUND"


def test_bad_paths_exit_2(place: str) -> None:
    for path in ("/a/../b", "/a\x01b", "/" + "x" * 256):
        result = run_svc("cat", "-D", place, path, check=False)
        assert result.returncode == 2, (path, result)


def test_the_system_namespace_is_invisible(place: str, tmp_path: Path) -> None:
    for arguments in (
        ["cat", "/.svc-system/plugins/files"],
        ["ls", "/.svc-system"],
        ["rm", "-r", "/.svc-system"],
        ["get", "/.system/x", str(tmp_path / "x")],
        ["dump", str(tmp_path / "d"), "/.svc-system"],
    ):
        assert run_svc(arguments[0], "-D", place, *arguments[1:], check=False).returncode == 3, arguments
    result = run_svc("put", "-D", place, "-", "/.svc-system/new", stdin=b"x", check=False)
    assert result.returncode == 3
    assert b".svc-system" not in run_svc("ls", "-D", place, "-R", "/").stdout


def test_conditions_at_the_shell(place: str) -> None:
    run_svc("put", "-D", place, "--create-only", "-", "/f", stdin=b"one")
    assert run_svc("put", "-D", place, "--create-only", "-", "/f", stdin=b"two", check=False).returncode == 4
    wrong = run_svc("put", "-D", place, "--if-match", "0" * 64, "-", "/f", stdin=b"two", check=False)
    assert wrong.returncode == 4
    item = json.loads(run_svc("ls", "-D", place, "--json", "-d", "/f").stdout)
    run_svc("put", "-D", place, "--if-match", item["hash"], "-", "/f", stdin=b"two")
    assert run_svc("cat", "-D", place, "/f").stdout == b"two"


def test_an_interrupted_get_goes_on(place: str, tmp_path: Path) -> None:
    content = os.urandom(500_000)
    run_svc("put", "-D", place, "-", "/f", stdin=content)
    run_svc("get", "-D", place, "-C", "/f", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == content


def test_load_and_dump_part_of_a_tree(place: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("a", "b/c", "b/d/e"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "b" / "empty").mkdir()
    run_svc("load", "-D", place, source, "/in")
    run_svc("dump", "-D", place, tmp_path / "out", "/in/b")
    assert (tmp_path / "out" / "d" / "e").read_text() == "b/d/e"
    assert (tmp_path / "out" / "empty").is_dir()
    assert run_svc("dump", "-D", place, tmp_path / "out", "/in", check=False).returncode != 0
    (source / "a").unlink()
    run_svc("load", "-D", place, "--delete", source, "/in")
    assert run_svc("cat", "-D", place, "/in/a", check=False).returncode == 3
    assert run_svc("cat", "-D", place, "/in/b/c").stdout == b"b/c"


def test_info_and_verify_of_a_file(tmp_path: Path) -> None:
    database = tmp_path / "x.svcdb"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").write_bytes(b"x" * 1000)
    run_svc("load", "-D", database, tmp_path / "in")
    information = json.loads(run_svc("info", "-D", database, "--json").stdout)
    assert len(bytes.fromhex(information["version"])) == 32
    run_svc("verify", "-D", database)
    assert run_svc("verify", "-D", tmp_path / "missing.svcdb", check=False).returncode == 3
    assert not (tmp_path / "missing.svcdb").exists()


def test_verify_finds_a_flipped_bit_and_names_the_path(tmp_path: Path) -> None:
    database = tmp_path / "x.svcdb"
    source = tmp_path / "in"
    source.mkdir()
    content = os.urandom(50_000)
    (source / "damaged.bin").write_bytes(content)
    (source / "sound.bin").write_bytes(os.urandom(50_000))
    run_svc("load", "-D", database, source)
    data = bytearray(database.read_bytes())
    place = data.find(content[1000:1100])
    assert place > 0
    data[place] ^= 1
    database.write_bytes(data)
    result = run_svc("verify", "-D", database, check=False)
    assert result.returncode == 7
    assert b"damaged.bin" in result.stdout + result.stderr
    assert b"sound.bin" not in result.stdout + result.stderr
    assert run_svc("cat", "-D", database, "/damaged.bin", check=False).returncode == 7
    assert len(run_svc("cat", "-D", database, "/sound.bin").stdout) == 50_000


def test_the_list_of_plugins(tmp_path: Path) -> None:
    database = tmp_path / "x.svcdb"
    (tmp_path / "in").mkdir()
    run_svc("load", "-D", database, tmp_path / "in")
    output = run_svc("plugins", "list", "-D", database).stdout
    assert b"files" in output
    assert b"auth.disabled" in output
    assert run_svc("plugins", "disable", "-D", database, "files", check=False).returncode == 4, "it is needed"
    run_svc("plugins", "disable", "-D", database, "mirror")
    run_svc("plugins", "disable", "-D", database, "files")
    assert run_svc("ls", "-D", database, "/", check=False).returncode == 11
    run_svc("plugins", "enable", "-D", database, "files")
    run_svc("ls", "-D", database, "/")


@pytest.mark.parametrize(
    "arguments", [["no-such-command"], ["ls", "--no-such-option"], ["put"], ["verify", "x", "y"]]
)
def test_misuse_exits_2(arguments: list[str]) -> None:
    result = start_svc(*arguments, check=False)
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize(
    "database", ["127.0.0.1:6830", "localhost:6830/x", "svc.example.org:80", "[::1]:6830"]
)
@pytest.mark.parametrize("command", [["ls"], ["put", "/etc/hostname", "/x"], ["verify"]])
def test_a_url_without_its_scheme_is_no_new_file(tmp_path: Path, database: str, command: list[str]) -> None:
    result = run_svc(*command, "-D", database, check=False, cwd=tmp_path)
    assert result.returncode == 2
    assert f"http://{database}".encode() in result.stderr
    assert not list(tmp_path.iterdir())
