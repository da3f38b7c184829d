"""Small and large objects beside SeaweedFS, both asked to sync before they answer."""

from __future__ import annotations

import wrk
from large_files import download, gibibyte, upload
from measurement import Bench, kibibyte, renew
from report import interleave
from servers import seaweed, svc

SECONDS = 2.0
# The filer then syncs the content, though not its own record of the name.
_SYNC = "?fsync=true"
_PEER = "SeaweedFS filer"


def small(bench: Bench) -> None:
    """PUT and GET of 1 KiB, 32 connections, beside SeaweedFS's filer."""
    runs = iter(range(1000))
    with svc(bench.directory / "small.svcdb") as own, seaweed(bench.directory) as weed:
        puts, theirs = interleave(
            bench.rounds(3),
            lambda: wrk.put(own, "/files/small/", 32, SECONDS, f"r{next(runs)}").rate,
            lambda: wrk.put(weed, f"/small/{_SYNC}", 32, SECONDS, f"r{next(runs)}").rate,
        )
        bench.report.compare("PUT 1 KiB, 32 connections", puts, "1/s", f"{_PEER}, fsync", theirs)
        own.put("/files/one", kibibyte(0))
        weed.put("/one", kibibyte(0))
        gets, theirs = interleave(
            bench.rounds(3),
            lambda: wrk.get(own, "/files/one", 1024, 32, SECONDS).rate,
            lambda: wrk.get(weed, "/one", 1024, 32, SECONDS).rate,
        )
        bench.report.compare("GET 1 KiB, 32 connections", gets, "1/s", _PEER, theirs)


def large(bench: Bench) -> None:
    """PUT and GET of 1 GiB beside SeaweedFS's filer, by curl."""
    source = gibibyte(bench)
    size = source.stat().st_size
    with svc(bench.directory / "large.svcdb") as own, seaweed(bench.directory) as weed:

        def put_svc() -> float:
            renew(source)
            return upload(own, "/files/large", source)

        puts, theirs = interleave(bench.rounds(2), put_svc, lambda: upload(weed, f"/large{_SYNC}", source))
        name = f"{size >> 20:,} MiB file"
        bench.report.compare(f"PUT of a {name}", puts, "MB/s", f"{_PEER}, fsync", theirs)
        gets, theirs = interleave(
            bench.rounds(2),
            lambda: download(own, "/files/large", size),
            lambda: download(weed, "/large", size),
        )
        bench.report.compare(f"GET of a {name}", gets, "MB/s", _PEER, theirs)
