"""A server on a database that a storage backend opens: every process of it finds the same one."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Any]

URL = "elsewhere://user:key@x.svcdb"
SHOWN = "elsewhere://x.svcdb"


def test_a_server_its_background_process_and_commands_share_what_a_url_names(
    start: Start, run: Run, tmp_path: Path
) -> None:
    server = start("-D", URL)
    assert f"serving {SHOWN} at version" in server.ready
    assert server.get("/system/health")[0] == 200
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done = run("status", "-D", URL, "--json")
        found = json.loads(done.stdout)
        if done.returncode == 0 and found["background"]["running"]:
            break
    assert (done.returncode, found["findings"], found["database"]["path"]) == (0, [], SHOWN)
    assert len(found["workers"]) == 1
    assert server.stop() == 0
    assert (tmp_path / "elsewhere-x.svcdb").exists()
    assert "user:key" not in server.ready + server.log.read_text() + done.stdout
    assert run("verify", "-D", URL).returncode == 0


def test_what_one_process_alone_would_see_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("start", "--port", "0", "-D", "mem://x")
    assert done.returncode == 2
    assert "mem://x is seen by one process only" in done.stderr
    assert list(tmp_path.glob("*svcdb*")) == []


def test_an_unknown_scheme_is_told_with_those_that_there_are(run: Run) -> None:
    for words in (("start", "--port", "0"), ("background",)):
        done = run(*words, "-D", "s3://bucket/x")
        assert done.returncode == 2
        assert "elsewhere://, file://, mem://" in done.stderr
