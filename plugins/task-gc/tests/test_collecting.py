"""Collections by a request, as a task and at the shell."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import Result, TestClient
from svc_task_gc.collecting import SAFETY_PREFIX, collect_garbage
from svc_task_gc.configuration import GcConfiguration
from svc_tasks.api import TASK_TYPES, enqueue, find_task
from svc_tasks.configuration import TasksConfiguration
from svc_tasks.running.supervisor import Supervisor

from svc.errors import DatabaseBusy, SvcError
from svc.plugin import ROOT_IDENTITY, Database, Identity, collect, hash_content, unkept_versions
from svc.plugins import initialize, load_plugins, parse_allowed
from svc_cli import extensions_of, main
from svc_testing import PathRights, load_with_testing_auth, serve_in_process, start_server
from svc_versions.api import list_snapshots
from svc_versions.snapshots import rename_snapshot

ALL = ("task.gc", "tasks", "versions")
USER = Identity("00000000-0000-0000-0000-000000000009", "ann", rights=PathRights({"/": "crudlify"}))
SPECIFIED = {
    "versions_scanned",
    "live_entries",
    "garbage_entries",
    "reclaimed_bytes",
    "duration_ms",
    "dry_run",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.svcdb"


class Http:
    """Calls the routes of one application."""

    def __init__(self, app: Any, database: Database, become: Callable[[Identity | None], None]) -> None:
        self.database = database
        self.become = become
        self._client = TestClient(app)

    def __call__(self, method: str, path: str, **options: Any) -> Result:
        return self._client.simulate_request(method, path, **options)

    def post(self, path: str) -> Result:
        return self("POST", path)


def fill(database: Database) -> None:
    """Puts something that stays, and something that goes: a megabyte each."""
    chance = random.Random(1)
    with database.transaction() as transaction:
        transaction.put(("kept",), database.store_bytes(chance.randbytes(1_000_000)))
        transaction.put(("gone",), database.store_bytes(chance.randbytes(1_000_000)))
    with database.transaction() as transaction:
        transaction.delete(("gone",))


@pytest.fixture
def http(path: Path) -> Iterator[Http]:
    with serve_in_process(path, load_with_testing_auth(*ALL)) as (app, database, mode):

        def become(other: Identity | None) -> None:
            mode.identity = other

        mode.identity = ROOT_IDENTITY
        fill(database)
        yield Http(app, database, become)


def content(database: Database, name: str, root: bytes | None = None) -> bytes | None:
    version = database.at(root)
    entry = version.get((name,))
    return None if entry is None else version.read_all(entry)


class TestRoute:
    def test_it_is_roots(self, http: Http) -> None:
        http.become(USER)
        assert http.post("/system/gc").status_code == 403
        http.become(None)
        assert http.post("/system/gc").status_code == 401

    def test_it_collects_and_answers_the_report(self, http: Http) -> None:
        dry = http.post("/system/gc?dry_run=true")
        assert dry.status_code == 200
        assert set(dry.json) >= SPECIFIED
        assert dry.json["dry_run"] is True
        assert dry.json["reclaimed_bytes"] > 1_000_000
        assert list_snapshots(http.database) == []
        done = http.post("/system/gc")
        assert done.status_code == 200, done.json
        assert done.json["reclaimed_bytes"] >= dry.json["reclaimed_bytes"]
        assert done.json["allocated_after"] < done.json["allocated_before"] - 900_000
        (snapshot,) = list_snapshots(http.database)
        assert snapshot.name == done.json["snapshot"]
        assert done.json["snapshot_is_new"] is True
        assert snapshot.name.startswith(SAFETY_PREFIX)
        assert snapshot.kind == "automatic"
        kept = content(http.database, "kept")
        assert kept is not None
        assert content(http.database, "kept", snapshot.root) == kept

    @pytest.mark.parametrize("query", ["dry_run=perhaps", "keep_days=-1", "keep_days=nan", "keep_days=x"])
    def test_what_makes_no_sense_is_refused(self, http: Http, query: str) -> None:
        assert http.post(f"/system/gc?{query}").status_code == 400

    def test_days_can_be_kept(self, http: Http) -> None:
        assert http.post("/system/gc?keep_days=2").json["reclaimed_bytes"] == 0

    def test_while_another_collection_is_at_work_it_says_when_to_come_back(self, http: Http) -> None:
        answers = []

        def meet(_phase: str, _done: int, _total: int) -> None:
            if not answers:
                answers.append(http.post("/system/gc?dry_run=true"))

        collect(http.database, progress=meet)
        assert answers[0].status_code == 503
        assert answers[0].headers["retry-after"] == "10"


def test_what_the_deployment_sets_holds_for_a_request(path: Path) -> None:
    with Database(path) as database:
        fill(database)
        with start_server(path, "--plugin-option", "task.gc.keep_days=30", plugins=ALL) as server:
            report = server.request("POST", "/system/gc").json()
            assert report["garbage_entries"] == 0
            report = server.request("POST", "/system/gc?keep_days=0").json()
            assert report["reclaimed_bytes"] > 1_000_000


def test_where_snapshots_are_switched_off_none_is_made(http: Http) -> None:
    body = json.dumps({"snapshot_writes_enabled": False})
    answer = http("PUT", "/system/lifecycle", body=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    assert http.post("/system/gc").json["snapshot"] is None
    assert list_snapshots(http.database) == []


def test_the_task_collects_and_its_record_holds_the_report(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_PLUGINS", ",".join((*ALL, "auth.testing")))
    answer = http.post("/system/tasks/gc")
    assert answer.status_code == 202
    assert answer.json["args"] == {"dry_run": False, "keep_days": None}
    types = extensions_of(http.database, "tasks", TASK_TYPES)
    task = finish(http.database, types, answer.json["id"])
    assert task.status == "completed", task.error
    assert isinstance(task.result, dict)
    assert set(task.result) >= SPECIFIED
    assert task.result["reclaimed_bytes"] > 1_000_000
    with pytest.raises(SvcError):
        enqueue(http.database, types["gc"].value, {"keep_days": -1})


def finish(database: Database, types: Any, task_id: str) -> Any:
    supervisor = Supervisor(database, lambda: types, TasksConfiguration())
    supervisor.recover()
    try:
        deadline = time.monotonic() + 60
        while not find_task(database, task_id).is_finished and time.monotonic() < deadline:
            supervisor.tick(0.1)
    finally:
        supervisor.abandon()
    return find_task(database, task_id)


Run = Callable[..., str]


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with Database(path) as opened:
        initialize(opened, load_plugins(parse_allowed(",".join(ALL))))
        fill(opened)
        yield opened


@pytest.fixture
def run(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("SVC_PLUGINS", ",".join(ALL))

    def run_command(*words: str, check: int = 0) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*words, "-D", str(path)])
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == check, err
        return out if check == 0 else err

    return run_command


def test_the_shell_collects_beside_those_who_have_the_file_open(database: Database, run: Run) -> None:
    dry = json.loads(run("gc", "--dry-run", "--json"))
    assert dry["dry_run"] is True
    shown = run("gc")
    assert "bytes were reclaimed" in shown
    assert SAFETY_PREFIX in shown
    assert "which an earlier" not in shown
    again = run("gc")
    assert "which an earlier collection made" in again
    named = re.findall(SAFETY_PREFIX + r"\d+", shown + again)
    assert named[0] == named[1]
    said = json.loads(run("gc", "--json"))
    assert said["garbage_entries"] < dry["garbage_entries"]
    assert (said["snapshot"], said["snapshot_is_new"]) == (named[0], False)
    assert content(database, "kept") is not None
    run("gc", "--keep-days", "-1", check=2)


def test_the_shell_says_what_goes_and_asks_at_a_terminal(database: Database, path: Path) -> None:
    count, since = unkept_versions(database, 0)
    assert (unkept_versions(database, 1), count > 1, since is not None) == ((0, None), True, True)
    environment = {**os.environ, "SVC_PLUGINS": ",".join(ALL)}
    command = [Path(sys.executable).with_name("svc"), "gc", "-D", path]

    def at_a_terminal(answer: bytes) -> tuple[int, str]:
        keyboard, terminal = pty.openpty()
        streams = {"stdin": terminal, "stdout": subprocess.DEVNULL, "stderr": terminal}
        process = subprocess.Popen(command, env=environment, **streams)
        os.close(terminal)
        os.write(keyboard, answer)
        shown = b""
        with suppress(OSError):  # The other end is closed.
            while piece := os.read(keyboard, 65_536):
                shown += piece
        os.close(keyboard)
        return process.wait(60), shown.decode()

    code, shown = at_a_terminal(b"n\n")
    assert f"{count} versions can't be read afterwards, the oldest of 20" in shown
    assert (code, database.horizon()) == (1, 0)
    code, shown = at_a_terminal(b"y\n")
    assert (code, database.horizon() > 1) == (0, True), shown
    done = subprocess.run([*command, "--dry-run", "--keep-days", "1"], env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b""), "nothing goes, and nothing is said"


AS_SOMEBODY = """\
import os, sys
from svc_cli import main
# The interpreter's own files may be closed to others: the first call imports all that is needed.
for user in (0, 65534):
    print(end="", flush=True)
    os.ftruncate(1, 0)
    os.lseek(1, 0, os.SEEK_SET)
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    try:
        main(sys.argv[1:])
    except SystemExit as end:
        code = end.code or 0
sys.exit(code)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("closed", [".", "pins"])
def test_who_may_only_read_the_file_counts_what_would_go(closed: str) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        path = Path(directory, "x.svcdb")
        with Database(path) as database:
            initialize(database, load_plugins(parse_allowed(",".join(ALL))))
            fill(database)
            database.pin([hash_content(b"what a client was told of")])
            beside = database.state_directory
        for one in (path.parent, path, beside, *beside.rglob("*")):
            one.chmod(0o755 if one.is_dir() else 0o644)
        (beside / closed).chmod(0o700)
        before = path.read_bytes()
        with tempfile.TemporaryFile("w+") as told:
            words = ("gc", "--dry-run", "--json", "-D", str(path))
            environment = {**os.environ, "SVC_PLUGINS": ",".join(ALL)}
            done = subprocess.run(
                [sys.executable, "-c", AS_SOMEBODY, *words],
                env=environment,
                stdout=told,
                stderr=subprocess.PIPE,
                text=True,
            )
            told.seek(0)
            assert done.returncode == 0, done.stderr
            report = json.load(told)
        assert report["dry_run"] is True
        assert "uploaded ahead" in report["warning"]
        assert "24 hours" in report["warning"]
        assert path.read_bytes() == before


def test_compacting_gives_back_what_holes_could_not(
    database: Database, path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _offset: int, _length: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("svc.log.FileOperations.punch_hole", staticmethod(refuse))
    kept, root = content(database, "kept"), database.head().root
    collect(database)
    assert "no database" not in run("compact", check=8)  # it is open here
    database.close()
    before = path.stat()
    said = json.loads(run("compact", "--json"))
    after = path.stat()
    assert said["replaced"] is True
    assert after.st_size >= before.st_size
    assert after.st_blocks * 512 < before.st_blocks * 512 - 900_000
    assert said["allocated_after"] == after.st_blocks * 512
    assert after.st_mode == before.st_mode
    assert not list(path.parent.glob(".*compact*"))
    assert "stays as it is" in run("compact")
    with Database(path) as opened:
        assert opened.head().root == root
        assert content(opened, "kept") == kept
        with opened.transaction() as transaction:
            transaction.put(("new",), b"goes on")
    run("verify")
    shutil.rmtree(f"{path}.d")
    with Database(path) as opened:
        assert content(opened, "kept") == kept


def test_of_the_safety_snapshots_the_newest_stay(path: Path) -> None:
    settings = GcConfiguration(safety_snapshots_kept=2)
    with Database(path) as database:
        names = []
        for number in range(4):
            with database.transaction() as transaction:
                transaction.put(("f",), f"{number}".encode() * 1000)
            names.append(collect_garbage(database, settings)["snapshot"])
        left = [one.name for one in list_snapshots(database)]
        assert left == [names[3], names[2]]
        assert collect_garbage(database, settings)["snapshot"] == names[3], "HEAD has not moved"
        assert [one.name for one in list_snapshots(database)] == left
        renamed = rename_snapshot(database, names[2], "mine")
        for number in range(4):
            with database.transaction() as transaction:
                transaction.put(("f",), f"again {number}".encode() * 1000)
            collect_garbage(database, settings)
        found = list_snapshots(database)
        assert len(found) == 3
        assert renamed.root in {one.root for one in found}


def test_a_collection_that_is_refused_leaves_no_snapshot(path: Path) -> None:
    with Database(path) as database, Database(path) as other:
        fill(database)
        refused = []

        def meet(_phase: str, _done: int, _total: int) -> None:
            if not refused:
                with pytest.raises(DatabaseBusy) as caught:
                    collect_garbage(other, None)
                refused.append(caught.value)

        collect_garbage(database, GcConfiguration(safety_snapshot=False), progress=meet)
        assert refused
        assert list_snapshots(database) == []


def test_little_garbage_of_the_system_is_left_and_told(path: Path) -> None:
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put(("f",), b"x")
        for number in range(3):
            with database.transaction() as transaction:
                transaction.put_system(("notes",), f"{number}".encode() * 100)
        foretold = collect_garbage(database, GcConfiguration(safety_snapshot=False), dry_run=True)
        report = collect_garbage(database, GcConfiguration(safety_snapshot=False))
        assert report["garbage_entries"] == foretold["garbage_entries"] > 0
        assert report["reclaimed_bytes"] == foretold["reclaimed_bytes"] == 0
        assert "the system's own records" in report["warning"]


def test_a_collection_waits_for_another_where_it_shall(path: Path) -> None:
    with Database(path) as database, Database(path) as other:
        fill(database)
        phases: list[str] = []
        done: list[dict[str, Any]] = []

        def wait() -> None:
            settings = GcConfiguration(safety_snapshot=False)
            done.append(
                collect_garbage(other, settings, progress=lambda phase, *_: phases.append(phase), waits=True)
            )

        waiting = threading.Thread(target=wait)

        def meet(_phase: str, _done: int, _total: int) -> None:
            if not waiting.ident:
                waiting.start()
                while "queue" not in phases:
                    time.sleep(0.01)

        collect_garbage(database, GcConfiguration(safety_snapshot=False), progress=meet)
        waiting.join(30)
        assert [report["waiting"] for report in done] == [None]
        assert phases[0] == "queue"


def test_a_second_collection_of_a_process_is_refused_before_it_costs_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from svc_task_gc import process

    with Database(tmp_path / "x.svcdb") as database:

        def ask(command: Any, order: Any) -> Any:
            with pytest.raises(DatabaseBusy):
                process.collect_in_process(database, GcConfiguration(), {})
            return {"dry_run": True}

        monkeypatch.setattr(process, "_ask", ask)
        for _ in range(2):
            assert process.collect_in_process(database, GcConfiguration(), {}) == {"dry_run": True}
