"""Short turns are asked for, and nothing else changes."""

from __future__ import annotations

import json
import subprocess
import sys

_PROGRAM = """
import ctypes, json, os, sys
from svc_server import scheduling

niceness = os.nice(3)
scheduling.prefer_quick_turns()
found = scheduling._Attributes()
number = {"x86_64": 315, "aarch64": 275}.get(os.uname().machine)
if number is not None:
    ctypes.CDLL(None).syscall(number, 0, ctypes.byref(found), ctypes.sizeof(found), 0)
print(json.dumps({
    "keeps_niceness": os.getpriority(os.PRIO_PROCESS, 0) == niceness,
    "policy": os.sched_getscheduler(0) == os.SCHED_OTHER,
    "slice": found.runtime,
    "switch": sys.getswitchinterval(),
    "release": [int(part) for part in os.uname().release.split(".")[:2]],
}))
"""


def test_a_worker_asks_for_short_turns_and_keeps_its_priority() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert (found["keeps_niceness"], found["policy"], found["switch"]) == (True, True, 0.0005)
    if found["release"] >= [6, 12]:
        assert found["slice"] in (0, 500_000)  # 0 where the system call was refused
