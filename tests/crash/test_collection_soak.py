"""Mixed load with one collection after the other: ``SVC_TEST_CRASH_SCALE=720`` makes it an hour.

Writers in several processes, snapshots and forks that come and go, readers of old snapshots, exports. In the
end everything acknowledged is there, the database verifies clean, and the file takes little more than what
is needed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.driver import TESTS
from crash.scale import SEED, scaled
from crash.soak import digest
from svc.database import Database, collect
from svc.errors import AlreadyExists, NotFound
from svc.log import record_size
from svc_backup.format.outgoing import plan_export
from svc_maintenance.verification import verify

SECONDS = 5 * scaled(1, most=720)
PERIOD = min(60.0, SECONDS / 6)


def bytes_of_needed_records(database: Database) -> int:
    """Bytes of all records that are needed, commits among them, wherever they lie."""
    return sum(record_size(place.stored_length) for _, place in database.objects.index.objects())


def snapshots(database: Database, stop: threading.Event) -> None:
    """Makes snapshots and forks, reads what they hold, and removes them again."""
    number = 0
    while not stop.is_set():
        number += 1
        kind = "snapshots" if number % 3 else "forks"
        name = f"{kind}/{number}"
        with database.transaction() as transaction:
            transaction.copy_ref("HEAD", name)
        with database.hold():
            root = next(found for one, found in database.refs() if one == name)
            version = database.at(root)
            state = {path: digest(version.read_all(entry)) for path, entry in version.walk(files_only=True)}
        if kind == "forks":
            with database.transaction(ref=name) as transaction:
                transaction.put(("only here",), b"%d" % number * 1000)
        stop.wait(PERIOD / 2)
        if kind == "snapshots":
            again = database.at(root)
            for path, found in state.items():
                entry = again.get(path)
                assert entry is not None
                assert digest(again.read_all(entry)) == found
        with database.transaction() as transaction:
            transaction.set_ref(name, None)
        del transaction, version


def exports(database: Database, stop: threading.Event, directory: Path) -> None:
    """Writes the present state to a file, which is then opened and verified."""
    number = 0
    while not stop.is_set():
        number += 1
        target = directory / f"export{number}.svcdb"
        with (
            database.hold(),
            plan_export(database, database.head().root) as outgoing,
            target.open("wb") as file,
        ):
            file.writelines(outgoing.pieces())
        with Database(target, read_only=True) as opened:
            report = verify(opened)
            assert report.ok, report.damaged[:3]
        target.unlink()
        stop.wait(PERIOD)


@pytest.mark.timeout(3 * SECONDS + 300)
def test_collections_beside_everything_lose_nothing_and_keep_the_file_small(memory: Path) -> None:
    path = memory / "x.svcdb"
    with Database(path) as database:
        stop = threading.Event()
        failures: list[BaseException] = []

        def guarded(task: Callable[..., None], *arguments: object) -> threading.Thread:
            def run() -> None:
                try:
                    task(database, stop, *arguments)
                except (AlreadyExists, NotFound) as error:
                    failures.append(error)
                except BaseException as error:
                    failures.append(error)

            thread = threading.Thread(target=run)
            thread.start()
            return thread

        command = [sys.executable, "-m", "crash.soak", str(path)]
        writers = [
            subprocess.Popen(
                [*command, f"w{number}", str(SEED), str(SECONDS)], cwd=TESTS, stdout=subprocess.PIPE
            )
            for number in range(2)
        ]
        threads = [guarded(snapshots), guarded(exports, memory)]
        destroyed = 0
        try:
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline and not failures:
                report = collect(database, wait_seconds=30)
                destroyed += report.reclaimed_bytes > 0
                if PERIOD >= 5:
                    stop.wait(PERIOD)
                else:
                    time.sleep(0.1)
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
            outputs = [writer.communicate(timeout=120)[0] for writer in writers]
        assert not failures, failures[0]
        assert [writer.returncode for writer in writers] == [0, 0]
        assert destroyed >= 2
        acknowledged: dict[str, str] = {}
        for output in outputs:
            acknowledged |= json.loads(output)
        version = database.at()
        found = {
            "/".join(where): digest(version.read_all(entry)) for where, entry in version.walk(files_only=True)
        }
        assert found == acknowledged
        for _ in range(2):
            report = collect(database, wait_seconds=30)
            assert report.waiting is None
        assert verify(database).damaged == []
        assert report.allocated_after is not None
        assert report.allocated_after <= 1.5 * bytes_of_needed_records(database)
