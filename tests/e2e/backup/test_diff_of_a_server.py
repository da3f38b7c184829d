"""``svc diff`` shows the lines that differ, of a database file and of its server."""

from __future__ import annotations

from pathlib import Path

from svc.database import Database
from svc_testing import start_server
from svc_testing.processes import run_svc


def test_the_lines_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.svcdb"
    with start_server(path, plugins=("files", "history", "versions", "backup")) as server:
        with Database(path) as database:
            with database.transaction() as transaction:
                transaction.put(("a",), b"one\ntwo\n", content_type="text/plain")
                transaction.put(("gone",), b"x", content_type="text/plain")
                transaction.put(("bin",), b"\0", content_type="text/plain")
                transaction.put(("d", "f"), b"below\n", content_type="text/plain")
            before = database.head().root.hex()
            with database.transaction() as transaction:
                transaction.put(("a",), b"one\n2\nthree", content_type="text/plain")
                transaction.put(("bin",), b"\0\0", content_type="text/x-new")
                transaction.delete(("gone",))
                transaction.delete(("d", "f"))
                transaction.mkdir(("new", "empty"))
                transaction.link(("link",), "/a")
        for words in ((), ("/a",), ("-U", "0"), ("/none",)):
            told = [
                run_svc("diff", "--from", before, *words, "-D", place) for place in (str(path), server.url)
            ]
            assert told[0].exit_code == 0, told[0].stderr
            assert told[1] == told[0]
        assert "+three" in run_svc("diff", "--from", before, "-D", server.url).stdout
