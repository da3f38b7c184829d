"""Greenlets and native threads import one module for the first time at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROUNDS = 100

_IMPORTERS = f"""
from gevent import monkey; monkey.patch_all()
import importlib, random, sys
import gevent
from svc_server.import_locks import use_native_import_locks

use_native_import_locks()
sys.setswitchinterval(1e-5)
pool = gevent.get_hub().threadpool
pool.maxsize = 6

def load(number):
    for name in "abc":
        assert importlib.import_module(f"part{{name}}{{number}}")

for number in range({ROUNDS}):
    importers = [random.choice((pool.spawn, gevent.spawn))(load, number) for _ in range(6)]
    ended = gevent.wait(importers, timeout=30)
    assert len(ended) == len(importers), f"round {{number}}: one waits for ever"
    for one in ended:
        one.get()
"""


def test_none_waits_for_ever(tmp_path: Path) -> None:
    """With gevent's locks one did within the first rounds."""
    for number in range(ROUNDS):
        for name in "abc":
            (tmp_path / f"part{name}{number}.py").write_text("import time\ntime.sleep(0)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", _IMPORTERS], check=True, timeout=110, env=environment)
