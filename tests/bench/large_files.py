"""A file of 1 GiB up and down over HTTP at once: speed beside cp, and the worker's memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from report import Report, Row, interleave

_SIZE = 1 << 30
_PORT = 6899


def run(report: Report, directory: Path) -> None:
    """Measures PUT, GET and the peak memory of the worker while both go on."""
    source = directory / "source"
    with open(source, "wb") as file:
        file.writelines(os.urandom(1 << 20) for _ in range(_SIZE >> 20))
    database = directory / "large.svcdb"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [str(Path(sys.executable).parent / "svc"), "start", "-D", str(database), "--auth", "disabled"]
    with subprocess.Popen(
        [*command, "--port", str(_PORT), "--workers", "1"], stdout=subprocess.PIPE, env=environment, text=True
    ) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            _measure(report, directory, source, server.pid)
        finally:
            server.terminate()


def _measure(report: Report, directory: Path, source: Path, pid: int) -> None:
    runs = iter(range(100))
    put, copy = interleave(
        lambda: _put(source, f"f{next(runs)}"), lambda: _copy(source, directory / "copy"), 2
    )
    report.add(Row("PUT of a 1 GiB file", put, "MB/s", "cp + fsync", copy, put / copy, 0.4))
    get, _ = interleave(lambda: _get("f0"), lambda: 0.0, 2)
    report.add(Row("GET of a 1 GiB file", get, "MB/s", "cp + fsync", copy, get / copy, None))
    _renew(source)
    upload = threading.Thread(target=_put, args=(source, "both"))
    download = threading.Thread(target=_get, args=("f0",))
    upload.start()
    download.start()
    peak = 0
    while upload.is_alive() or download.is_alive():
        peak = max(peak, *(_resident(worker) for worker in _children(pid)))
        time.sleep(0.02)
    mebibytes = peak / (1 << 20)
    report.add(
        Row(
            "memory of a worker, 1 GiB up and down at once",
            mebibytes,
            "MiB",
            "limit of 150 MiB",
            None,
            mebibytes,
            150,
            at_most=True,
        )
    )


def _renew(source: Path) -> None:
    """Writes 1 GiB of bytes that no chunk is like."""
    with open(source, "wb") as file:
        file.writelines(os.urandom(1 << 20) for _ in range(_SIZE >> 20))


def _put(source: Path, name: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        ["curl", "-sSf", "-o", os.devnull, "-T", str(source), f"http://127.0.0.1:{_PORT}/files/{name}"],
        check=True,
    )
    return _SIZE / 1e6 / (time.perf_counter() - start)


def _get(name: str) -> float:
    start = time.perf_counter()
    subprocess.run(["curl", "-sSf", "-o", os.devnull, f"http://127.0.0.1:{_PORT}/files/{name}"], check=True)
    return _SIZE / 1e6 / (time.perf_counter() - start)


def _copy(source: Path, target: Path) -> float:
    start = time.perf_counter()
    shutil.copyfile(source, target)
    with open(target, "rb+") as file:
        os.fsync(file.fileno())
    return _SIZE / 1e6 / (time.perf_counter() - start)


def _children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children] or [pid]


def _resident(pid: int) -> int:
    """Resident memory without the pages of mapped files, which the kernel may take back."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
