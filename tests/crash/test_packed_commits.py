"""Collections that pack commits, ended by SIGKILL at every step or by a power cut: no commit is missing."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

from crash.block_layer import record
from crash.boots import another_boot
from crash.scale import SEED, scaled
from crash.test_collection import FILE, INDEX, RUNNING, killed_fork
from crash.test_power_cut import place
from svc.database import Commit, Database, collect
from svc.database.packed_commits import RANGE
from svc.hashing import Hash
from svc_maintenance.verification import verify

HISTORY = RANGE + 80
DEATHS = [
    f"{INDEX}.forget_commits:1:kill",
    f"{INDEX}.forget_commits:1:kill-after",
    f"{RUNNING}._publish_horizon:1:kill",
    f"{INDEX}.condemn:9:kill-after",
    f"{INDEX}.forget_condemned:1:kill",
    f"{INDEX}.forget_condemned:1:kill-after",
    *[
        f"commit.{step}:{call}:{action}"
        for call in (1, 3, 4)
        for step in ("announce", "append", "sync", "index", "publish")
        for action in ("kill", "kill-after")
    ],
    f"{FILE}.overwrite:1:kill",
    f"{FILE}.overwrite:2:short",
    f"{FILE}.overwrite:40:short",
    f"{FILE}.overwrite:80:kill-after",
    f"{FILE}.punch:1:kill",
    f"{FILE}.punch:10:kill-after",
]


class Past:
    """A database with a history, and what it says of it."""

    def __init__(self, path: Path) -> None:
        with Database(path) as database:
            for number in range(HISTORY):
                with database.transaction(message=f"number {number}") as transaction:
                    content = random.Random(number).randbytes(2000 + 9000 * (number % 4 == 0))
                    transaction.put((f"f{number % 5}",), database.store_bytes(content))
            self.commits = self.told(database)

    @staticmethod
    def told(database: Database) -> list[tuple[Commit, Hash]]:
        """The commits of the history by their numbers, and in order: both must agree."""
        found = [database.read_commit(sequence) for sequence in range(1, HISTORY + 1)]
        fed = database.feed(0)
        assert [next(fed) for _ in range(HISTORY)] == found
        return found

    def check(self, database: Database) -> None:
        """Reads the history as it was, and verifies everything."""
        assert self.told(database) == self.commits
        for commit, _ in self.commits:
            assert database.commit_of(commit.root) == commit.sequence
        # What a recovery cut is named until somebody has moved it away.
        assert [one for one in verify(database).damaged if ".cut-" not in one.message] == []

    def check_and_go_on(self, database: Database) -> None:
        """As ``check``; then writes and collects."""
        self.check(database)
        with database.transaction() as transaction:
            transaction.put(("later",), b"it goes on")
        assert collect(database, wait_seconds=10).waiting is None
        self.check(database)
        assert database.objects.index.commit_place(1) is None
        assert database.objects.index.condemned_count() == 0


def test_a_kill_at_any_step_loses_no_commit(memory: Path) -> None:
    past = Past(memory / "past.svcdb")
    deaths = list(DEATHS)
    random.Random(f"packs {SEED}").shuffle(deaths)
    for number, fault in enumerate(deaths[: scaled(8, most=len(deaths))]):
        path = memory / f"{number}.svcdb"
        shutil.copyfile(memory / "past.svcdb", path)
        shutil.copytree(memory / "past.svcdb.d", f"{path}.d")
        try:
            killed_fork(path, fault)
            # What lies beside the log is gone in one copy, of another boot in a second, older in a third.
            copies = {name: memory / f"{name}.svcdb" for name in ("bare", "booted", "older")}
            for copy in copies.values():
                shutil.copyfile(path, copy)
            shutil.copytree(f"{path}.d", f"{copies['booted']}.d")
            shutil.copytree(memory / "past.svcdb.d", f"{copies['older']}.d")
            with Database(path) as database:
                past.check_and_go_on(database)
            with Database(copies["bare"]) as database:
                past.check_and_go_on(database)
            with another_boot():
                for name in ("booted", "older"):
                    with Database(copies[name]) as database:
                        past.check_and_go_on(database)
        except BaseException as error:
            error.add_note(fault)
            raise
        for copy in (path, *copies.values()):
            copy.unlink()
            shutil.rmtree(f"{copy}.d")


def test_whatever_a_power_cut_leaves_of_a_collection_holds_every_commit(memory: Path) -> None:
    path = memory / "x.svcdb"
    past = Past(path)
    with record(path) as recording, Database(path) as database:
        began = len(recording.events)
        assert collect(database, wait_seconds=5).reclaimed_bytes > 100_000
        assert database.objects.index.commit_place(1) is None
    image = memory / "image.svcdb"
    for number in range(scaled(30, most=1000)):
        chance = random.Random(f"{SEED} packs {number}")
        moment = chance.randint(began, len(recording.events))
        place(image, recording.image(moment, chance), None)
        try:
            with another_boot():
                with Database(image) as opened:
                    past.check(opened)
                with Database(image) as opened:
                    past.check_and_go_on(opened)
        except BaseException as error:
            error.add_note(f"image {number}, moment {moment} of {began} to {len(recording.events)}")
            raise
        for saved in image.parent.glob("*.cut-*"):
            os.unlink(saved)
