"""``svc events`` on a file; on a server it is tested with the streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from svc.plugin import Database
from svc_testing import Completed


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    return ("events", "files")


def test_a_file_is_read_from_the_beginning_or_from_behind_an_event(
    run_svc: Callable[..., Completed], database: Database, tmp_path: Path
) -> None:
    for name in "abc":
        with database.transaction() as changes:
            changes.put((name,), b"x")
    done = run_svc("events", "-D", database.path, "--json")
    assert done.exit_code == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["payload"] for one in events] == [{"entries": [{"path": f"/{name}"}]} for name in "abc"]
    done = run_svc("events", "-D", database.path, "--since", events[0]["event_id"], "--path-prefix", "/c")
    assert [line.split()[-2:] for line in done.stdout.splitlines()] == [["entries_created", "/c"]]
    done = run_svc("events", "-D", database.path, "--type", "entries_deleted")
    assert (done.exit_code, done.stdout) == (0, "")


def test_what_is_no_type_or_no_id_is_refused(run_svc: Callable[..., Completed], database: Database) -> None:
    done = run_svc("events", "-D", database.path, "--type", "nothing")
    assert done.exit_code != 0
    assert "entries_created" in done.stderr
    assert run_svc("events", "-D", database.path, "--since", "nothing").exit_code != 0
