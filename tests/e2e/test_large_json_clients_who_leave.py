"""Work on a large JSON document ends with the client who asked for it."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
from gevent import monkey
monkey.patch_all()
import os, sys, gevent
from pathlib import Path
from svc.executor import use_executor
from svc.plugin import dear_work
from svc_files import child_process, json_process
from svc_server.gevent_executor import GeventExecutor
from svc_worker.turns import Abandoned, abandon
from types import SimpleNamespace
use_executor(GeventExecutor())
child_process._PROGRAM = "import time; time.sleep(600)"
def children():
    lists = [task / "children" for task in Path("/proc/self/task").iterdir()]
    return [child for each in lists for child in each.read_text().split()]
ended = []
def ask():
    call = SimpleNamespace(identity_or_none=None, client_address="::1")
    try:
        with dear_work(call):
            json_process.values_at(1 << 20, lambda: b"[1]", ["/0"], 100)
    except Abandoned:
        ended.append("told")
worker = gevent.spawn(ask)
while not children():
    gevent.sleep(0.01)
abandon(worker)
worker.join(30)
print(*ended, children())
"""


def test_the_process_that_decodes_is_killed_when_the_client_leaves() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "told []", done.stderr
