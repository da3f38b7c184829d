"""A large file that is stored again with one byte changed: what nobody has to write costs little."""

from __future__ import annotations

import os
import random
from pathlib import Path

from large_files import check, copy, upload
from measurement import Bench, write_random
from report import interleave
from servers import svc

_MEBIBYTES = 64


def overwrites(bench: Bench) -> None:
    """PUT of a 64 MiB file again, of which one byte has changed, by curl, beside cp + fsync of it."""
    source = write_random(bench.directory / "source", _MEBIBYTES << 20)
    with svc(bench.directory / "again.svcdb") as own:

        def put() -> float:
            _change(source)
            return upload(own, "/files/again", source)

        put()
        puts, copies = interleave(bench.rounds(7), put, lambda: copy(source, bench.directory / "copy"))
        check(own, "/files/again", source)
    work = f"PUT of a file of {_MEBIBYTES} MiB again, one byte changed"
    bench.report.compare(work, puts, "MB/s", "cp + fsync", copies)


def _change(path: Path) -> None:
    """Changes one byte; it is on the disk then."""
    with open(path, "rb+") as file:
        file.seek(random.randrange(path.stat().st_size))
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
        os.fsync(file.fileno())
