"""What people are told when it does not work: their own words and options, and the right exit code."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_testing.processes import svc_command

Run = Callable[..., Any]

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(b"content")
    return path


def assert_said(result: Any, *parts: str) -> None:
    """One line that starts as all of them do, names nothing of HTTP, and holds these parts."""
    assert result.err.startswith("svc: ")
    assert result.err.count("\n") == 1
    for part in parts:
        assert part in result.err
    for foreign in ("If-Match", "If-None-Match", "recursive=true", "Traceback", "vanished"):
        assert foreign not in result.err


class TestWhatIsToBeStored:
    def test_a_file_that_is_not_there(self, run: Run, database: str, tmp_path: Path, source: Path) -> None:
        for file in (tmp_path / "nofile", source / "below"):
            assert_said(run("put", file, "/x", "-D", database, check=3), f"There is no file {file}.")

    def test_what_is_no_regular_file(self, run: Run, database: str, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for file in ("/dev/null", tmp_path / "pipe"):
            assert_said(run("put", file, "/x", "-D", database, check=2), "is no regular file")
        assert_said(run("put", tmp_path, "/x", "-D", database, check=2), "svc load")

    def test_an_empty_and_a_very_long_name(self, run: Run, database: str) -> None:
        assert_said(run("put", "", "/x", "-D", database, check=2), "FILE is empty")
        assert_said(run("put", "a" * 5000, "/x", "-D", database, check=2), "file name too long")

    @as_root
    @pytest.mark.parametrize("place", ["", "below"])
    def test_a_file_that_may_not_be_read(self, server: str, place: str) -> None:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            secret = Path(directory, place, "file")
            secret.parent.mkdir(mode=0o700, exist_ok=True)
            secret.write_bytes(b"x")
            secret.chmod(0o600)
            Path(directory).chmod(0o755)
            # The interpreter's own files may be closed to others: all that is needed is imported before.
            program = (
                "import os, sys, svc_cli, svc_files.descriptor, svc_files.commands.put, svc_files.client\n"
                "from svc_cli.opening import boot_commands; boot_commands()\n"
                "import http.client, encodings.idna, click\n"
                "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
                f"svc_files.commands.put.put(['{secret}', '/x', '-D', '{server}'], standalone_mode=False)"
            )
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
            assert done.stderr.endswith(f"svc.errors.Forbidden: There is no permission to read {secret}.\n")

    def test_standard_input_that_is_closed(self, tmp_path: Path) -> None:
        command = [*svc_command(), "put", "-", "/x", "-D", str(tmp_path / "x.svcdb")]
        done = subprocess.run(
            ["sh", "-c", '"$@" <&-', "sh", *command],
            env={**os.environ, "SVC_PLUGINS": "files"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert done.stderr == "svc: Standard input cannot be read: bad file descriptor.\n"


class TestConditions:
    def test_create_only(self, run: Run, database: str, top: str, source: Path) -> None:
        run("put", source, f"{top}/f", "-D", database)
        result = run("put", source, f"{top}/f", "-D", database, "--create-only", check=4)
        assert_said(result, f"{top}/f: ", "--create-only")

    def test_if_match(self, run: Run, database: str, top: str, source: Path) -> None:
        run("put", source, f"{top}/f", "-D", database)
        for words in (("put", source, f"{top}/f"), ("put", source, f"{top}/new"), ("rm", f"{top}/f")):
            assert_said(run(*words, "-D", database, "--if-match", "00", check=4), f"{top}/", "--if-match")

    def test_a_directory_that_is_not_empty(self, run: Run, database: str, top: str, source: Path) -> None:
        run("put", source, f"{top}/d/f", "-D", database)
        run("put", source, f"{top}/f", "-D", database)
        for words in ((f"{top}/d",), (f"{top}/f", f"{top}/d")):
            assert_said(run("rm", *words, "-D", database, check=4), f"{top}/d: ", "--recursive")
        run("rm", f"{top}/d", "--recursive", "-D", database)


class TestWhereItGoes:
    def test_a_directory_that_is_not_there(self, run: Run, database: str, top: str, source: Path) -> None:
        run("put", source, f"{top}/f", "-D", database)
        result = run("get", f"{top}/f", "/nowhere/at/all", "-D", database, check=3)
        assert_said(result, "/nowhere/at/all cannot be written to: no such file or directory.")
        assert_said(run("dump", "/proc/nowhere", top, "-D", database, check=3), "/proc/nowhere")
        assert_said(run("dump", "", top, "-D", database, check=3), "An empty name")

    def test_a_directory_that_takes_nothing(self, run: Run, tmp_path: Path, source: Path) -> None:
        database = tmp_path / "x.svcdb"
        run("put", source, "/f", "-D", database)
        for words in (("get", "/f", "/sys/x"), ("dump", "/sys/x")):
            assert_said(run(*words, "-D", database, check=5), "/sys/x cannot be written to: ")

    def test_a_range_that_names_nothing(self, run: Run, database: str, top: str) -> None:
        run("put", "-", f"{top}/one", "-D", database, stdin=b"x")
        result = run("get", f"{top}/one", "-", "--range", "5-9", "-D", database, check=2)
        assert_said(result, "The file has 1 byte; --range names none of them.")

    @pytest.mark.parametrize("words", [("cat", "/f"), ("get", "/f", "-"), ("ls", "-R"), ("ls", "--json")])
    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_a_full_disk_behind_standard_output(
        self, run: Run, tmp_path: Path, words: tuple[str, ...], unbuffered: str
    ) -> None:
        database = tmp_path / "x.svcdb"
        run("put", "-", "/f", "-D", database, stdin=b"x" * 60_000)
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [*svc_command(), *words, "-D", str(database)],
                stdout=full,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "SVC_PLUGINS": "files"},
            )
        assert (done.returncode, done.stderr.count(b"\n")) == (9, 1)
        assert b"No space left on device" in done.stderr

    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_a_part_that_is_written_is_never_taken_for_the_whole(
        self, run: Run, server: str, tmp_path: Path, unbuffered: str
    ) -> None:
        """A write that found room for a part says so by a number only, which an unbuffered stream drops."""
        source = tmp_path / "large"
        source.write_bytes(os.urandom(900_000))
        run("put", source, "/part", "-D", server)
        limited = f'ulimit -f 200; exec "$@" > {tmp_path / "out"}'
        done = subprocess.run(
            ["sh", "-c", limited, "sh", *svc_command(), "cat", "/part", "-D", server],
            capture_output=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "SVC_PLUGINS": "files"},
        )
        assert (tmp_path / "out").stat().st_size < 900_000
        assert done.returncode == 9, done.stderr

    def test_standard_output_that_is_closed(self, run: Run, tmp_path: Path) -> None:
        """Its number must not become that of the database, into which the listing would go."""
        database = tmp_path / "x.svcdb"
        run("put", "-", "/f", "-D", database, stdin=b"x")
        before = database.read_bytes()
        for words in (("ls",), ("cat", "/f"), ("ls", "--json")):
            command = [*svc_command(), *words, "-D", str(database)]
            done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")
        assert database.read_bytes() == before


class TestLoad:
    def test_an_empty_directory_whose_time_changed_is_no_removal(
        self, run: Run, database: str, top: str, tmp_path: Path
    ) -> None:
        tree = tmp_path / "tree"
        (tree / "empty").mkdir(parents=True)
        (tree / "file").write_bytes(b"x")
        os.utime(tree / "empty", (1_000_000_000, 1_000_000_000))
        run("load", tree, top, "-D", database, "--keep-times")
        os.utime(tree / "empty", (1_100_000_000, 1_100_000_000))
        planned = run("load", tree, top, "-D", database, "--keep-times", "--dry-run")
        assert "remove" not in planned.err + planned.text
        report = run("load", tree, top, "-D", database, "--keep-times", "--json").json
        assert (report["removed"], report["directories"], report["problem_count"]) == (0, 1, 0)
        [item] = run("ls", "-d", f"{top}/empty", "-D", database, "--json").lines
        assert item["updated_at"] == 1_100_000_000_000

    def test_what_a_mirror_removes_from_a_directory_counts(
        self, run: Run, database: str, top: str, tmp_path: Path
    ) -> None:
        tree = tmp_path / "tree"
        (tree / "d").mkdir(parents=True)
        (tree / "d" / "file").write_bytes(b"x")
        run("load", tree, top, "-D", database)
        (tree / "d" / "file").unlink()
        report = run("load", tree, top, "-D", database, "--delete", "--keep-times", "--json").json
        assert report["removed"] == 1

    def test_what_is_left_out_has_a_code_of_its_own(
        self, run: Run, database: str, top: str, tmp_path: Path
    ) -> None:
        (tmp_path / "tree").mkdir()
        (tmp_path / "tree" / "out").symlink_to("/etc/passwd")
        result = run("load", tmp_path / "tree", top, "-D", database, "--json", check=12)
        assert '"code": "INCOMPLETE"' in result.err
        assert "1 item of" in result.err


class TestWhichDatabase:
    @pytest.mark.parametrize("words", [("ls",), ("cat", "/x"), ("rm", "/x"), ("put", "-", "/x")])
    def test_what_is_neither_a_file_nor_a_server(
        self, run: Run, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert_said(run(*words, "-D", "ftp://host/x", check=2), "--database", "ftp://host/x", "http://")
        assert_said(run(*words, "-D", "", check=2), "--database is empty")
        assert_said(run(*words, "-D", tmp_path, check=6), "is a directory, not an svc database.")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "words", [("ls",), ("cat", "/x"), ("rm", "/x"), ("put", "-", "/x"), ("load", ".")]
    )
    def test_a_server_of_something_else(self, run: Run, foreign: str, words: tuple[str, ...]) -> None:
        assert_said(run(*words, "-D", foreign, check=8), foreign, "does not answer as an svc server does")


@pytest.fixture(scope="module")
def foreign() -> Iterator[str]:
    """The URL of a web server that is not svc."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send_error(404, "Not here")

        do_HEAD = do_GET  # noqa: N815 - the name that http.server asks for

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
