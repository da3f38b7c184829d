"""Large files over HTTP: speed beside cp and nginx, the worker's memory, and cost by size."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import processes
from blake3 import blake3
from client import Client
from measurement import Bench, renew, write_random
from report import Panel, interleave, seconds_of
from servers import Server, nginx, svc


def gibibyte(bench: Bench) -> Path:
    """A file of 1 GiB of random bytes, in a directory of its own. Its bytes change from use to use."""

    def make(path: Path) -> Path:
        path.mkdir()
        return write_random(path / "source", bench.choose(1 << 30, 1 << 27))

    return bench.material("gibibyte", make)


def speed(bench: Bench) -> None:
    """PUT of 1 GiB beside cp + fsync, GET beside nginx, by curl."""
    source = gibibyte(bench)
    runs = iter(range(100))
    with svc(bench.directory / "large.svcdb") as own, nginx(bench.directory, source.parent) as static:

        def put() -> float:
            renew(source)
            return upload(own, f"/files/f{next(runs)}", source)

        puts, copies = interleave(bench.rounds(2), put, lambda: copy(source, bench.directory / "copy"))
        name = f"{source.stat().st_size >> 20:,} MiB file"
        bench.report.compare(f"PUT of a {name}", puts, "MB/s", "cp + fsync", copies, 0.4)
        last = f"/files/f{next(runs) - 1}"
        check(own, last, source)
        size = source.stat().st_size
        gets, files = interleave(
            bench.rounds(3), lambda: download(own, last, size), lambda: download(static, "/source", size)
        )
        bench.report.compare(f"GET of a {name}", gets, "MB/s", "nginx static", files, 0.5)


def memory(bench: Bench) -> None:
    """Peak memory of the worker during an upload and a download of 1 GiB at once."""
    source = gibibyte(bench)
    size = source.stat().st_size
    with svc(bench.directory / "memory.svcdb") as own:
        upload(own, "/files/first", source)
        before = max(_resident(process) for process in processes.children(own.pid))
        renew(source)
        threads = [
            threading.Thread(target=upload, args=(own, "/files/second", source)),
            threading.Thread(target=download, args=(own, "/files/first", size)),
        ]
        for thread in threads:
            thread.start()
        peak = 0
        while any(thread.is_alive() for thread in threads):
            peak = max(peak, *(_resident(process) for process in processes.children(own.pid)))
            time.sleep(0.02)
    work = f"memory of a worker, {size >> 20:,} MiB up and down at once"
    bench.report.limit(work, [peak / (1 << 20)], "MiB", 150)
    bench.report.limit("memory of a worker at rest", [before / (1 << 20)], "MiB")


def sizes(bench: Bench) -> None:
    """PUT and GET by size, 1 KiB to 256 MiB, one connection, beside write + fdatasync and nginx."""
    points: dict[str, dict[float, list[float]]] = {}
    static = bench.directory / "static"
    static.mkdir()
    with svc(bench.directory / "sizes.svcdb") as own, nginx(bench.directory, static) as files:
        clients = Client(own), Client(files)
        list(_costs(*clients, static, b"warm"))
        for _ in range(bench.rounds(3)):
            for size in (1 << exponent for exponent in range(10, bench.choose(29, 23), 2)):
                for label, seconds in _costs(*clients, static, os.urandom(size)):
                    points.setdefault(label, {}).setdefault(size, []).append(seconds * 1000)
    panel = Panel("one file over one connection", "size", "milliseconds", sizes=True)
    for label, line in points.items():
        bench.report.curve(panel, label, line)


def upload(server: Server, path: str, source: Path) -> float:
    """Puts a file with curl; returns MB/s."""
    command = server.uploading(path, source)
    return source.stat().st_size / 1e6 / seconds_of(lambda: subprocess.run(command, check=True))


def download(server: Server, path: str, size: int) -> float:
    """Gets a file of as many bytes with curl, and drops it; returns MB/s."""
    command = server.downloading(path)
    start = time.perf_counter()
    got = subprocess.run(command, check=True, capture_output=True).stdout
    seconds = time.perf_counter() - start
    assert int(got) == size, f"{got!r} bytes instead of {size}"
    return size / 1e6 / seconds


def _costs(own: Client, files: Client, static: Path, content: bytes) -> Iterator[tuple[str, float]]:
    """Seconds that it takes to write and read a content in four ways."""
    name, size = str(time.monotonic_ns()), len(content)
    yield "svc PUT, durable", seconds_of(lambda: own.put(f"/files/{name}", content))
    yield "write + fdatasync", seconds_of(lambda: _write(static / name, content))
    yield "svc GET", seconds_of(lambda: own.get(f"/files/{name}", size))
    yield "nginx GET", seconds_of(lambda: files.get(f"/{name}", size))


def check(server: Server, path: str, source: Path) -> None:
    """Makes sure that the server gives back what the file holds."""
    expected = blake3(max_threads=blake3.AUTO).update_mmap(source).digest()
    got = blake3(max_threads=blake3.AUTO)
    with subprocess.Popen(server.curl(server.url(path)), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while piece := process.stdout.read(1 << 24):
            got.update(piece)
    assert process.returncode == 0 and got.digest() == expected, f"{path} is not what was stored"


def copy(source: Path, target: Path) -> float:
    """Copies a file and syncs the copy; returns MB/s."""

    def copy() -> None:
        subprocess.run(["cp", "--reflink=never", str(source), str(target)], check=True)
        with open(target, "rb+") as file:
            os.fsync(file.fileno())

    target.unlink(missing_ok=True)
    return source.stat().st_size / 1e6 / seconds_of(copy)


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(content)
        os.fdatasync(file.fileno())


def _resident(pid: int) -> int:
    """Resident memory of a process, pages of mapped files among it; 0 when it has ended."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
