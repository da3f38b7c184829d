"""gevent's patching reads what is installed once, and asks the plugins of gevent that are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHILD = """
from importlib import metadata
from gevent import monkey
from svc_worker.patching import entry_points_read_once

reading = metadata.entry_points
calls = 0

def counted(**wanted):
    global calls
    calls += 1
    return reading(**wanted)

metadata.entry_points = counted
with entry_points_read_once():
    monkey.patch_all()
print(calls, metadata.entry_points is counted)
"""
PLUGIN = """
def tell(event):
    print(type(event).__name__)
"""


def test_what_is_installed_is_read_once_and_plugins_of_gevent_are_asked(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(PLUGIN)
    metadata = tmp_path / "told-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: told\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[gevent.plugins.monkey.will_patch_all]\na = told:tell\n"
        "[gevent.plugins.monkey.did_patch_all]\na = told:tell\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["GeventWillPatchAllEvent", "GeventDidPatchAllEvent", "1 True"]


CLOSING = """
from gevent import get_hub, monkey
from svc_worker.patching import keep_closing

monkey.patch_all()
keep_closing()
import os, time

def is_closed():
    time.sleep(0.01)  # gives the thread a hub
    descriptor = os.open("/", os.O_RDONLY)
    os.close(descriptor)
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False

print(get_hub().threadpool.apply(is_closed))
"""


def test_native_threads_close_directories() -> None:
    done = subprocess.run([sys.executable, "-c", CLOSING], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
