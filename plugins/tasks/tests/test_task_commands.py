"""``svc task`` and ``svc cron``: the same for a file and for a server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from svc_tasks.api import list_tasks
from svc_tasks.commands.cron import cron
from svc_tasks.commands.task import task
from svc_tasks.lock import RunnerLock

from svc.database import Database
from svc.errors import SvcError
from svc.plugins import Plugins, initialize
from svc_testing import DistributionFactory, Server, start_server

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, strange: DistributionFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("served") / "served.svcdb"
    with start_server(
        path,
        *("--background", "true"),
        plugins=("tasks", "acme.strange"),
        env=strange.environment({}),
    ) as running:
        yield running


@pytest.fixture(params=["file", "server"])
def where(request: Any, tmp_path: Path, plugins: Plugins) -> str:
    if request.param == "server":
        return str(request.getfixturevalue("served").url)
    path = tmp_path / "file.svcdb"
    with Database(path) as database:
        assert initialize(database, plugins) == ()
    return str(path)


def call(group: Any, *arguments: str) -> Result:
    runner = CliRunner()
    result = runner.invoke(group, arguments, env={"SVC_DATABASE": None})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(group: Any, *arguments: str, code: int = 0) -> Any:
    result = call(group, *arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_a_task_is_run_and_waited_for(where: str) -> None:
    done = answer(task, "run", "count", "--arg", "to=4", "--arg", "name=four", "-D", where)
    assert (done["status"], done["result"], done["args"]["name"]) == ("completed", {"counted": 4}, "four")
    shown = answer(task, "show", done["id"], "-D", where)
    assert shown == done
    assert done["id"] in [one["id"] for one in answer(task, "list", "--type", "count", "-D", where)]
    text = call(task, "list", "-D", where).stdout
    assert "completed" in text
    assert '{"counted": 4}' in text
    assert "counted" in call(task, "show", done["id"], "-D", where).stdout


def test_a_task_that_fails_says_why_and_exits_with_1(where: str) -> None:
    failed = answer(task, "run", "raise", "-D", where, code=1)
    assert failed["error"] == "RuntimeError: the moon is full"
    result = call(task, "watch", failed["id"], "-D", where)
    assert result.exit_code == 1
    assert "the moon is full" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "none"),
        ("run", "hidden"),
        ("run", "count", "--arg", "to=x"),
        ("run", "count", "--arg", "to"),
        ("run", "bad-check"),
        ("run", "picky", "--arg", "file=none"),
        ("show", "f" * 32),
        ("show", "nothing"),
        ("cancel", "f" * 32),
        ("watch", "f" * 32),
    ],
)
def test_what_is_wrong_is_said(where: str, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SvcError) as refused:
        call(task, *arguments, "-D", where)
    assert refused.value.status in (400, 404)


def test_schedules_are_added_listed_changed_and_removed(where: str) -> None:
    made = answer(cron, "add", "nightly", "count", "30 3 * * *", "--arg", "to=3", "-D", where)
    assert (made["args"], made["enabled"], len(made["next_runs"])) == ({"to": 3}, True, 3)
    assert answer(cron, "list", "-D", where) == [made]
    text = call(cron, "list", "-D", where).stdout
    assert text.count(":30:00") == 3
    assert answer(cron, "disable", "nightly", "-D", where)["enabled"] is False
    assert "disabled" in call(cron, "list", "-D", where).stdout
    assert "next: " in call(cron, "enable", "nightly", "-D", where).stdout
    with pytest.raises(SvcError, match="already"):
        call(cron, "add", "nightly", "count", "30 3 * * *", "-D", where)
    for wrong in (("b", "count", "61 * * * *"), ("b", "none", "1 * * * *"), ("b c", "count", "1 * * * *")):
        with pytest.raises(SvcError) as refused:
            call(cron, "add", *wrong, "-D", where)
        assert refused.value.status == 400
    assert "removed nightly" in call(cron, "remove", "nightly", "-D", where).stdout
    assert answer(cron, "list", "-D", where) == []
    for name in ("enable", "disable", "remove"):
        with pytest.raises(SvcError) as gone:
            call(cron, name, "nightly", "-D", where)
        assert gone.value.status == 404


@pytest.fixture
def path(tmp_path: Path, plugins: Plugins) -> Iterator[str]:
    name = str(tmp_path / "alone.svcdb")
    with Database(name) as database:
        assert initialize(database, plugins) == ()
    yield name
    assert not [pid for pid in os.listdir("/proc") if is_task_of(pid, name)]


def is_task_of(pid: str, path: str) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "svc-task\n" and path in os.readlink(
            f"/proc/{pid}/fd/3"
        )
    except OSError:
        return False


def test_what_is_enqueued_only_waits_and_can_be_cancelled_by_the_beginning_of_its_id(path: str) -> None:
    made = answer(task, "run", "count", "--no-wait", "-D", path)
    assert made["status"] == "pending"
    with pytest.raises(SvcError, match="Nobody runs the tasks"):
        call(task, "watch", made["id"], "-D", path)
    assert call(task, "cancel", made["id"][:20], "-D", path).stdout == f"cancelled {made['id']}\n"
    with pytest.raises(SvcError, match="have an id that begins"):
        answer(task, "run", "count", "--no-wait", "-D", path)
        call(task, "show", "0", "-D", path)


def test_a_command_runs_its_own_task_and_leaves_others_alone(path: str) -> None:
    other = answer(task, "run", "endless", "--no-wait", "-D", path)
    done = answer(task, "run", "count", "--arg", "to=2", "-D", path)
    assert done["status"] == "completed"
    assert answer(task, "show", other["id"], "-D", path)["status"] == "pending"


def test_where_somebody_else_runs_tasks_a_command_looks_on(path: str, strange: Any) -> None:
    import subprocess

    from svc_testing.processes import svc_command

    with Database(path) as database:
        lock = RunnerLock(database)
        assert lock.acquire()
        assert not RunnerLock(database).acquire()
        process = subprocess.Popen(
            [*svc_command(), "task", "run", "babble", "-D", path, "--json"],
            env=strange.environment({**os.environ}),
            stdout=subprocess.PIPE,
        )
        # It waits for whoever holds the lock; when that is gone, it does the work itself.
        while not list_tasks(database):
            assert process.poll() is None
        lock.release()
        output, _ = process.communicate(timeout=60)
        assert json.loads(output)["status"] == "completed"
