"""The page of the plugin: its drill is done by its very lines, and its tables are those of the code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from svc_task_backup.task import BackupArguments

from svc.plugin import Database
from svc_maintenance.verification import verify
from svc_testing import DistributionFactory, PluginContract, Server, start_server

from .conftest import Backups, contents  # noqa: TID252

PAGE = (Path(__file__).parents[3] / "docs" / "plugins" / "task-backup.md").read_text(encoding="utf-8")
PLUGINS = ("backup", "tasks", "task.backup")
JSON = {"Content-Type": "application/json"}


class TestPlugin(PluginContract):
    plugin_id = "task.backup"


def test_every_argument_has_its_row_and_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE.split("## Arguments")[1], re.MULTILINE))
    for field in msgspec.structs.fields(BackupArguments):
        shown = {None: "HEAD"}.get(field.default, str(field.default))
        assert rows[field.name].strip("` ") == shown


def test_every_member_of_a_result_is_described(backups: Backups) -> None:
    described = set(re.findall(r"`(\w+)`", PAGE.split("## The result")[1].split("##")[0]))
    results = [backups(chain_length=2), backups(chain_length=2)]
    assert {*results[0], *results[1]} <= described


def drill() -> list[str]:
    """The blocks of lines of the drill."""
    section = PAGE.split("## The restoring drill")[1]
    blocks = re.findall(r"(?:^    .+\n)+", section, re.MULTILINE)
    return [re.sub("^    ", "", block, flags=re.MULTILINE) for block in blocks]


def shell(lines: str, directory: Path, server: Server, environment: dict[str, str]) -> None:
    """Runs lines of the page as they stand, but for the address of the server."""
    commands = directory / "bin"
    commands.mkdir(exist_ok=True)
    code = "import sys; from svc_cli import main; sys.argv[0] = 'svc'; sys.exit(main())"
    script = commands / "svc"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$@"\n')
    script.chmod(0o755)
    lines = lines.replace("http://127.0.0.1:6830", server.url)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=directory,
        env={**os.environ, **environment, "PATH": f"{commands}:{os.environ['PATH']}"},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)


def whole(path: Path) -> tuple[str, dict[str, bytes]]:
    with Database(path) as restored:
        assert verify(restored).ok
        return restored.head().root.hex(), contents(restored)


def test_the_drill_restores_what_was_there(tmp_path: Path, testing_auth: DistributionFactory) -> None:
    path = tmp_path / "files.svcdb"
    first, start, chain = drill()
    environment = testing_auth.environment({"SVC_PLUGINS": ",".join((*PLUGINS, "auth.testing"))})
    with Database(path) as database:
        with database.transaction() as transaction:
            transaction.put(("docs", "large"), os.urandom(400_000))
            transaction.put(("docs", "empty"), b"")
            transaction.link(("link",), "/docs/empty")
        with start_server(path, "--background", "true", plugins=PLUGINS) as server:
            shell(first, tmp_path, server, environment)
            root = database.head().root.hex()
            assert whole(tmp_path / "restored.svcdb") == (root, contents(database))
            body = msgspec.json.encode({"backup_dir": "chain", "chain_length": 3})
            for number in range(4):
                with database.transaction() as transaction:
                    transaction.put(("docs", str(number % 2)), os.urandom(1_000))
                done = backup(server, body)
                assert done["version"] == database.head().root.hex()
            shell(chain, tmp_path, server, environment)
        root = database.head().root.hex()
        assert whole(tmp_path / "restored-chain.svcdb") == (root, contents(database))
    assert start.startswith("svc start -D restored.svcdb")
    with start_server(tmp_path / "restored.svcdb", plugins=PLUGINS) as again:
        assert again.get("/system/health").json()["status"] == "healthy"


def backup(server: Server, body: bytes) -> dict[str, Any]:
    task = server.request("POST", "/system/tasks/backup", body=body, headers=JSON).json()
    for _ in range(3_000):
        task = server.get(f"/system/tasks/{task['id']}").json()
        if task["status"] not in ("pending", "running"):
            break
        time.sleep(0.02)
    assert task["status"] == "completed", task
    result: dict[str, Any] = task["result"]
    return result
