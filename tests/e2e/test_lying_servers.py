"""Commands against a server that is not svc, or lies: an error in words, and nothing for the terminal."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_blackbox.lying import Answer, LyingServer
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server

ESCAPE = "\x1b]0;PWNED\x07\x9b31m"
"""Gives a terminal's window another title, and colours."""
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

HASH = "a" * 64
READING = [
    *("ls /", "ls -l /", "ls -R /", "ls -l /d/f.txt", "ls /d/*", "info", "status", "whoami"),
    *("log", "show HEAD", "history /d/f.txt", "history --commits /d/f.txt", "blame /d/f.txt", "blame /d"),
    *("snapshot list", "fork list", "fork list --abandoned", "diff --from one", "key list"),
    *("user list", "user show u", "group list", "group show g", "grant list", "access /d --as u"),
    *("share list /d", "share links", "share with-me"),
    *("query /d", "query /d --count", "query /d --group-by title", "query /d --select title"),
    *("query /d --explain", "search words", "index status /", "index show /d", "index suggest /d", "events"),
    *("task list", "cron list", "plugins list", "plugins info files", "plugins doctor"),
]
CHANGING = [
    *("put W/a /d/new", "rm /d/new", "load W/src /l", "put W/a /d/f.txt", "get /d/f.txt W/got"),
    *("snapshot create two", "snapshot rename two three", "snapshot restore one", "snapshot delete three"),
    *("fork create b", "fork promote b", "merge b --dry-run", "fork abandon b", "restore /d --from one"),
    *("key create", "user add v", "group add h", "grant add /d --user u --allow r", "share link /d"),
    *(
        "share add /d --user u",
        "index rebuild /d",
        "gc --dry-run",
        "task run gc",
        "cron add c gc '0 0 1 1 *'",
    ),
    *("cron disable c", "cron remove c", "plugins enable files", "dump W/dump /d", f"promote {HASH}"),
    *("export W/e.svcdb", "diff --from one -o W/p.svcdb", "import W/a"),
]
OF_ONE_THING = ["key revoke x", "task show abcd", "task cancel abcd", "cat /d/f.txt", "share revoke x"]

MEMBERS = (
    *("items", "results", "snapshots", "forks", "commits", "history", "users", "groups", "grants", "keys"),
    *("tasks", "schedules", "plugins", "findings", "changes", "lines", "links", "shares", "indexes", "jobs"),
    *("directories", "failures", "members", "levels", "decisions"),
)
SHAPES: dict[str, Any] = {
    "an empty object": {},
    "empty members": {name: [{}] for name in MEMBERS} | {"total": 1, "has_more": False},
    "members of other types": {name: index for index, name in enumerate(MEMBERS)},
    "a list of nothing": [1, None],
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lies")
    (place / "src").mkdir()
    (place / "src" / "a").write_text("x")
    (place / "a").write_text("x")
    return place


def words_of(command: str, directory: Path, url: str) -> list[str]:
    return [*shlex.split(command.replace("W/", f"{directory}/")), "-D", url]


def run(command: str, directory: Path, url: str) -> Any:
    for name in ("got", "e.svcdb", "p.svcdb"):
        (directory / name).unlink(missing_ok=True)
    return run_svc(*words_of(command, directory, url), check=False)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_no_server_of_svc_answers_is_said_in_words(
    directory: Path, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(directory))

    def lie(answer: Answer) -> None:
        answer.body = json.dumps(SHAPES[shape]).encode()
        kind = "file" if answer.path.partition("?")[0].endswith("f.txt") else "directory"
        answer.headers |= {"X-Svc-Entry-Type": kind, "X-Svc-Version": HASH, "X-Svc-Path": "/"}
        answer.headers |= {"X-Svc-Size": "5", "X-Svc-Content-Hash": HASH}
        answer.headers |= {"X-Svc-Created-At": "9" * 30, "X-Svc-Updated-At": "9" * 30}

    wrong = {}
    with LyingServer(lie) as server:
        for command in (*READING, *CHANGING, *OF_ONE_THING):
            done = run(command, directory, server.url)
            if b"Traceback" in done.stderr or done.returncode not in (2, 3, 4, 7, 8, 12):
                wrong[command] = (done.returncode, done.stdout[-200:], done.stderr[-300:])
    for command, shown in wrong.items():
        print(command, *shown, sep="\n    ")
    assert set(wrong) <= {"ls -l /d/f.txt"} | SENSIBLE.get(shape, set())


@pytest.mark.parametrize("command", ["query /d", "query /d --select title"])
def test_a_page_that_ends_before_its_end_is_not_taken_for_all(directory: Path, command: str) -> None:
    def lie(answer: Answer) -> None:
        answer.body = json.dumps({"results": [], "has_more": True}).encode()

    with LyingServer(lie) as server:
        assert run(command, directory, server.url).returncode == 8


SENSIBLE = {"empty members": {"query /d --select title"}}
"""Commands for which a shape is no nonsense; what the heads of the answers say of a file is none either."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, directory: Path) -> Iterator[str]:
    server = Server(tmp_path_factory.mktemp("truth") / "served.svcdb", "--workers", "1").start()
    client = server.client()
    fields = [{"name": "title", "type": ["exact", "fulltext"]}]
    configuration = json.dumps({"glob": "*.json", "indexes": fields})
    client.request("PUT", "/files/d/.svc-config/indexes.json", configuration.encode())
    client.request("PUT", "/files/d/f.txt", b"one\ntwo\n")
    for number in range(3):
        client.request("PUT", f"/files/d/{number}.json", b'{"title": "some words"}')
    run_svc("snapshot", "create", "one", "-D", server.url)
    client.request("PUT", "/files/d/f.txt", b"one\nthree\n")
    link = json.dumps({"target": "/d/f.txt"}).encode()
    client.request("PUT", "/links/d/link", link, {"Content-Type": "application/json"})
    for command in (
        *("user add u", "group add g --tag t", "grant add /d --user u --allow r", "fork create a"),
        *("share link /d", "key create", "task run gc", "cron add x gc '0 0 1 1 *'"),
    ):
        run_svc(*words_of(command, directory, server.url), check=False)
    yield server.url
    server.close()


_ENUMERATED = frozenset(
    ("status", "change_type", "op", "type", "kind", "entry_type", "code", "reason", "phase", "content_base64")
)


def poisoned(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: poisoned(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [poisoned(one, name) for one in value]
    return ESCAPE + value if isinstance(value, str) and name not in _ENUMERATED else value


def test_the_truth_is_believed(directory: Path, served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(directory))
    wrong = {}
    for command in (*READING, "gc --dry-run", "task run gc", "cron add y gc '0 0 1 1 *'", "cron remove y"):
        done = run(command, directory, served)
        if done.returncode:
            wrong[command] = (done.returncode, done.stdout[-300:], done.stderr[-300:])
    wrong.pop("key list")  # there are none without sign-ins
    assert not wrong


def test_nothing_that_a_server_says_reaches_the_terminal_as_it_is(
    directory: Path, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(directory))

    def lie(answer: Answer) -> None:
        kind = answer.headers.get("Content-Type", "")
        if "text/plain" in kind:
            answer.headers["Content-Type"] = ESCAPE + kind
        if not answer.body:
            return
        if "json" in kind:
            answer.body = json.dumps(poisoned(json.loads(answer.body))).encode()
        elif "event-stream" in kind:
            lines = answer.body.split(b"\n")
            answer.body = b"\n".join(
                b"data:" + json.dumps(poisoned(json.loads(line[5:]))).encode()
                if line.startswith(b"data:")
                else line
                for line in lines
            )

    wrong = {}
    worked = set()
    with LyingServer(lie, served) as server:
        for command in (*READING, *CHANGING):
            done = run(command, directory, server.url)
            shown = (done.stdout + done.stderr).decode()
            if "\\x1b]0;PWNED" in shown:
                worked.add(command)
            if UNSAFE.search(shown) or b"Traceback" in done.stderr:
                wrong[command] = (done.returncode, done.stdout[-300:], done.stderr[-300:])
    for command, shown in wrong.items():
        print(command, *shown, sep="\n    ")
    assert not wrong
    assert {
        "ls /",
        "ls -l /",
        "ls -l /d/f.txt",
        "events",
        "log",
        "snapshot list",
        "user list",
        "query /d",
        "info",
    } <= worked


class TestContents:
    """What arrives is compared with what it should be."""

    @pytest.mark.parametrize("command", ["cat /d/f.txt", "cat /d/0.json /d/f.txt", "get /d/f.txt -"])
    def test_other_bytes_end_with_damage(self, directory: Path, served: str, command: str) -> None:
        def lie(answer: Answer) -> None:
            if answer.path.startswith("/files/d/f.txt"):
                answer.body = answer.body.upper()

        assert run(command, directory, served).returncode == 0
        with LyingServer(lie, served) as server:
            done = run(command, directory, server.url)
        assert done.returncode == 7
        assert b"/d/f.txt: The bytes do not have the file's content hash" in done.stderr

    def test_a_range_has_no_hash_to_compare(self, directory: Path, served: str) -> None:
        assert run("get /d/f.txt - --range 0-2", directory, served).stdout == b"one"

    @pytest.mark.parametrize("command", ["export W/e.svcdb", "diff --from one -o W/p.svcdb"])
    @pytest.mark.parametrize("length", ["its own", "as stated", "none"])
    def test_half_a_file_is_an_error_and_no_file(
        self, tmp_path: Path, served: str, command: str, length: str
    ) -> None:
        def lie(answer: Answer) -> None:
            if answer.path.startswith(("/versions/export", "/versions/diff")):
                answer.body = answer.body[: len(answer.body) // 2]
                stated = {"its own": len(answer.body), "as stated": answer.length, "none": None}
                answer.length = stated[length]

        with LyingServer(lie, served) as server:
            done = run(command, tmp_path, server.url)
        assert done.returncode == 8, done.stderr
        assert done.stderr.count(b"\n") == 1
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("command", ["export W/e.svcdb", "diff --from one -o W/p.svcdb"])
    @pytest.mark.parametrize(
        "report",
        ["{}", "[]", "x", '{"files": "x"}', '{"version": "\\u001b", "to": "x", "from": "y", "size": 1}'],
    )
    def test_a_report_that_makes_no_sense(
        self, directory: Path, served: str, command: str, report: str
    ) -> None:
        def lie(answer: Answer) -> None:
            if "X-Svc-Report" in answer.headers:
                answer.headers["X-Svc-Report"] = report

        with LyingServer(lie, served) as server:
            done = run(command, directory, server.url)
        assert done.returncode == 8, done.stderr
        assert b"Traceback" not in done.stderr
