"""A process that writes beside collections: ``python -m crash.soak DATABASE NAME SEED SECONDS``.

It prints, as JSON, what was acknowledged: paths and the digests of what stands there. Contents come from a
pool that all writers share, so that what one of them removes another stores again at any moment.
"""

from __future__ import annotations

import io
import json
import random
import sys
import threading
import time
from hashlib import blake2b

__all__ = ["pooled", "work"]

POOL = 60


def pooled(number: int) -> bytes:
    """A content of the pool: from some kilobytes to some hundred."""
    chance = random.Random(f"pool {number}")
    return chance.randbytes(chance.choice((3_000, 30_000, 90_000, 400_000)))


def digest(content: bytes) -> str:
    """What a journal keeps of a content."""
    return blake2b(content, digest_size=16).hexdigest()


def work(path: str, name: str, seed: int, seconds: float) -> dict[str, str]:
    """Writes with two threads; returns what was acknowledged."""
    from svc.database import Database

    acknowledged: dict[str, str] = {}
    failures: list[BaseException] = []
    with Database(path, create=False) as database:
        deadline = time.monotonic() + seconds

        def write(thread: int) -> None:
            chance = random.Random(f"{name} {thread} {seed}")
            own: dict[str, str] = {}
            try:
                while time.monotonic() < deadline and not failures:
                    place = f"{chance.randrange(30)}"
                    where = (name, str(thread), place)
                    with database.transaction(actor=name) as transaction:
                        if place in own and chance.random() < 0.3:
                            transaction.delete(where)
                            own.pop(place)
                        else:
                            content = pooled(chance.randrange(POOL))
                            if chance.random() < 0.2:
                                content += b"%d" % chance.getrandbits(60)
                            transaction.put(where, database.store(io.BytesIO(content)))
                            own[place] = digest(content)
                    time.sleep(0.005)
            except BaseException as error:
                failures.append(error)
            acknowledged.update({f"{name}/{thread}/{one}": found for one, found in own.items()})

        threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return acknowledged


if __name__ == "__main__":
    json.dump(work(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])), sys.stdout)
