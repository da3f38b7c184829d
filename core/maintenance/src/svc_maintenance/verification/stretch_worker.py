"""A process that checks stretches of a log for another one, which starts it as ``python -m`` this module.

It gets the file's descriptor, reads lines ``start stop limit`` from its input, and answers each in JSON.
"""

from __future__ import annotations

import os
import sys

import msgspec

from svc_maintenance.verification.stretches import Stretch, check_stretch

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Answers until the input ends."""
    descriptor, database_id = int(arguments[0]), bytes.fromhex(arguments[1])
    encoder = msgspec.json.Encoder()

    def read(offset: int, length: int) -> bytes:
        return os.pread(descriptor, length, offset)

    for line in sys.stdin:
        start, stop, limit = map(int, line.split())
        stretch: Stretch = check_stretch(read, start, stop, limit, database_id)
        sys.stdout.buffer.write(encoder.encode(stretch) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
