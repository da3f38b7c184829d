"""The history where its view cannot be brought up to date: a record is damaged, or the disk is full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from repair_material import flip, records_of
from svc.errors import InsufficientStorage
from svc.hashing import ObjectKind
from svc.plugin import Database
from svc_cli import main
from svc_history.reading import History
from svc_testing import start_server

AT = "/versions/file-history"


def told(http: Any, paths: Sequence[str]) -> list[Any]:
    """Everything that the routes say of some paths and of the forks, in small pages."""
    answers = []
    for path in paths:
        for url, query in (
            ("/versions/log", {"path": path}),
            (f"{AT}{path}", {"commits": "true"}),
            (f"/versions/blame{path}", {}),
        ):
            after: dict[str, str] = {}
            while True:
                answer = http.get(url, params={**query, **after, "limit": "3"})
                found = answer.json
                # A page may be short: which one ends the list is no matter.
                found.pop("has_more", None)
                cursor = found.pop("next_cursor", None)
                members = [name for name in ("commits", "history", "entries", "lines") if name in found]
                answers += [(url, path, row) for name in members for row in found.pop(name)]
                if cursor is None:
                    answers.append((url, path, answer.status_code, found))
                    break
                after = {"after": cursor}
    for url in ("/versions/log?fork=draft", "/versions/commits/3", "/versions/commits/99"):
        answers.append((url, http.get(url).json))
    return answers


def test_the_walk_says_what_the_view_says(http: Any, commit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    database = http.database
    commit({"/a": b"one\ntwo\n", "/d/x": b"1\n", "/d/e/y": b"2\n"}, message="began")
    commit({"/a": b"one\ntwo\nthree\n"}, actor="bob")
    http.post("/versions/forks", {"name": "draft"})
    commit({"/a": b"zero\none\n", "/new": b"n"}, actor="eve", fork="draft")
    with database.transaction(actor="ann") as transaction:
        transaction.move(("d",), ("moved",))
        transaction.copy(("a",), ("b",))
    commit({"/b": b"one\nother\n", "/moved/x": None})
    with database.transaction(actor="bob") as transaction:
        transaction.mkdir(("empty",))
    http.post("/versions/snapshots", {"name": "one"})
    commit({"/moved": None, "/a": None})
    paths = ("/", "/a", "/b", "/d", "/d/x", "/d/e/y", "/moved", "/moved/e/y", "/empty", "/nothing")
    by_view = told(http, paths)

    def refuse(self: History) -> None:
        raise InsufficientStorage("The disk is full.")

    monkeypatch.setattr(History, "catch_up", refuse)
    assert told(http, paths) == by_view


def damaged(path: Path, *numbers: int) -> Path:
    """A database with ten commits of one line each, of which the records of some are damaged then."""
    with Database(path) as database:
        for number in range(1, 11):
            with database.transaction(actor="ann", message=f"number {number}") as transaction:
                lines = "".join(f"line {one}\n" for one in range(1, number + 1))
                transaction.put(("a",), lines.encode(), content_type="text/plain")
                transaction.put(("d", f"f{number}"), b"x")
    commits = records_of(path, ObjectKind.COMMIT)
    for number in numbers:
        flip(path, *range(commits[number - 1].offset + 100, commits[number - 1].offset + 150))
    return path


Places = tuple[str, str]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """A database file with damage, as commands read it themselves and by a server."""
    path = damaged(tmp_path_factory.mktemp("damaged") / "x.svcdb", 4, 7, 8)
    with start_server(path, plugins=("history", "versions")) as server:
        yield str(path), server.url


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    with pytest.raises(SystemExit) as caught:
        main([*words, "--json"])
    printed = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, json.loads(printed.out), printed.err


@pytest.fixture(params=[0, 1], ids=["file", "server"])
def place(places: Places, request: pytest.FixtureRequest) -> str:
    return places[request.param]


def test_the_log_shows_what_is_readable_and_where_the_gaps_are(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer, said = run(capsys, "log", "-D", place)
    assert code == 7
    assert "the records of these commits are damaged: 4, 7, 8." in said
    assert answer["damaged_commits"] == [4, 7, 8]
    rows = {row["sequence"] - answer["commits"][-1]["sequence"] + 1: row for row in answer["commits"]}
    assert [number for number, row in rows.items() if row.get("damaged")] == [8, 4]
    assert rows[8]["changes"]["added"] == 2, "it stands for two commits"
    assert (rows[8]["user"], rows[8]["message"]) == (None, None)
    assert (rows[9]["user"], rows[9]["message"]) == ("ann", "number 9")
    for newer, older in zip(answer["commits"], answer["commits"][1:], strict=False):
        assert newer["parent"] == older["version"]


def test_pages_of_the_log_meet_each_gap_once(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = run(capsys, "log", "-D", place, "/a")[1]["commits"]
    assert len(whole) == 9
    for limit in range(1, 9):
        assert run(capsys, "log", "-D", place, "/a", "-n", str(limit))[1]["commits"] == whole[:limit]


def test_blame_names_nobody_for_what_a_damaged_commit_brought(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer, _ = run(capsys, "blame", "-D", place, "/a")
    assert (code, answer["damaged_commits"]) == (7, [4, 7, 8])
    users = {line["line"]: (line["user"], line.get("damaged", False)) for line in answer["lines"]}
    assert [number for number, found in users.items() if found == (None, True)] == [4, 7, 8]
    assert all(users[number] == ("ann", False) for number in (1, 2, 3, 5, 6, 9, 10))
    code, answer, _ = run(capsys, "blame", "-D", place, "/d")
    assert [row["name"] for row in answer["entries"] if row.get("damaged")] == ["f4", "f7", "f8"]


def test_one_commit_is_shown_if_it_is_whole(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    newest = run(capsys, "log", "-D", place)[1]["commits"][0]["sequence"]
    assert run(capsys, "show", "-D", place, str(newest))[0] == 0
    code, answer, _ = run(capsys, "show", "-D", place, str(newest - 2))
    assert (code, answer["damaged"], len(answer["changes"])) == (7, True, 3)
    with pytest.raises(SystemExit) as caught:
        main(["show", "-D", place, str(newest - 3)])
    assert caught.value.code not in (0, None)
