"""Commands say the same of collected commits for a database file and for its server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from svc.plugin import Database, collect
from svc_cli import main
from svc_testing import start_server

Places = tuple[str, str]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    with pytest.raises(SystemExit) as caught:
        main([*words, "--json"])
    printed = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, json.loads(printed.out), printed.err


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """A database whose first commits were collected, as a file and by a server."""
    path = tmp_path_factory.mktemp("collected") / "x.svcdb"
    with Database(path) as database:
        for number in range(3):
            with database.transaction(actor="ann", message=f"number {number}") as transaction:
                transaction.put(("d", "a"), b"line\n" * (number + 1), content_type="text/plain")
        with database.transaction(actor="bob") as transaction:
            transaction.move(("d",), ("e",))
            transaction.put(("d", "a"), b"line\nother\n", content_type="text/plain")
        collect(database, wait_seconds=0)
        with database.transaction(actor="eve") as transaction:
            transaction.put(("d", "a"), b"line\nnew\n", content_type="text/plain")
    with start_server(path, plugins=("history", "versions")) as server:
        yield str(path), server.url


@pytest.mark.parametrize(
    "words", ["log", "log /d/a", "log /e/a", "history /d/a --commits", "blame /d/a", "blame /e", "show 2"]
)
def test_a_server_says_of_collected_commits_what_the_file_says(
    collected: Places, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    by_file, by_server = (run(capsys, *words.split(), "-D", place) for place in collected)
    assert by_server == by_file
    assert by_file[0] == 0
    assert "collected" in str(by_file[1])
