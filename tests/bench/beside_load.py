"""Small gets while heavy work goes on: the latency that a caller sees, beside that of a quiet server."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from large_files import gibibyte
from load import Load, begin
from measurement import Bench, kibibyte, renew, tree_of_small_files
from servers import Server, nginx, program, svc

CLIENTS = 8
PAUSE = 0.01
SECONDS = 3.0


def slowest_gets(bench: Bench) -> None:
    """p99 of a GET of 1 KiB, quiet and while one upload of 1 GiB and one svc load go on."""
    static = bench.directory / "static"
    static.mkdir()
    (static / "file").write_bytes(kibibyte(0))
    quiet, busy, other = [], [], []
    for number in range(bench.rounds(3)):
        database = bench.directory / f"own-{number}.svcdb"
        with svc(database) as server:
            server.put("/files/file", kibibyte(0))
            with begin(server, "/files/file", CLIENTS, SECONDS, PAUSE) as loading:
                quiet.append(loading.end())
            busy.append(_beside_heavy_work(bench, server, database, server, "/files/file"))
        database = bench.directory / f"other-{number}.svcdb"
        with svc(database) as server, nginx(bench.directory, static) as bystander:
            other.append(_beside_heavy_work(bench, server, database, bystander, "/file"))
    work = "GET 1 KiB beside a 1 GiB upload and svc load"
    for quantile, goal in (("p99", 5.0), ("p50", None)):
        calm, loaded, nearby = (
            [getattr(load, f"{quantile}_ms") for load in loads] for loads in (quiet, busy, other)
        )
        name = f"{quantile} of {work}"
        bench.report.compare(name, loaded, "ms", "the same when quiet", calm, goal, at_most=True)
        bench.report.compare(name, loaded, "ms", "nginx beside the same work", nearby, at_most=True)


def _beside_heavy_work(bench: Bench, server: Server, database: Path, asked: Server, path: str) -> Load:
    """What callers of a server see from when the work begins until the first part of it is done.

    Args:
        bench: gives what is uploaded and loaded.
        server: takes the upload.
        database: of that server; ``svc load`` writes to it.
        asked: the server whose answers are measured.
        path: of the file that is asked for.
    """
    large = gibibyte(bench)
    tree = tree_of_small_files(bench)
    renew(large)
    command = [program("svc"), "load", "-q", "-D", str(database), str(tree), "/tree"]
    with (
        begin(asked, path, CLIENTS, 300.0, PAUSE) as loading,
        subprocess.Popen(server.uploading("/files/large", large)) as upload,
        subprocess.Popen(command, env=dict(server.environment), stderr=subprocess.DEVNULL) as importing,
    ):
        try:
            while upload.poll() is None and importing.poll() is None:
                time.sleep(0.02)
            measured = loading.stop()
        finally:
            importing.terminate()
    assert upload.returncode == 0, upload.returncode
    return measured
