"""kill -9 in the middle of the work, again and again: what was acknowledged stays, and the file is sound."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3

from crash.scale import scaled
from svc.database import Database
from svc_blackbox.client import Client, files
from svc_blackbox.server import Server, run_svc, svc_environment, svc_program
from svc_maintenance.verification import verify

ROUNDS_HTTP = scaled(3, most=60)
ROUNDS_SHELL = scaled(3, most=40)


class Load:
    """16 clients that store, replace and delete until the server is gone; it knows what was answered."""

    def __init__(self, url: str, round_number: int, known: dict[str, str]) -> None:
        self.url = url
        self.round = round_number
        self.known = known
        self.unsure: set[str] = set()
        self.answers = 0
        self._lock = threading.Lock()
        self.threads = [threading.Thread(target=self._work, args=(number,)) for number in range(16)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"

    def _work(self, number: int) -> None:
        chance = random.Random(self.round * 100 + number)
        client = Client(self.url)
        mine = [path for path in self.known if path.startswith(f"/{number}/")]
        for index in range(100_000):
            path = (
                chance.choice(mine) if mine and chance.random() < 0.3 else f"/{number}/{self.round}-{index}"
            )
            remove = path in self.known and chance.random() < 0.3
            content = b"" if remove else chance.randbytes(chance.choice((10, 1000, 5000, 90_000, 400_000)))
            with self._lock:
                self.unsure.add(path)
            try:
                response = client.delete(files(path)) if remove else client.put_file(path, content)
            except Exception:
                return
            assert response.status in (200, 201), (response.status, response.body)
            with self._lock:
                self.answers += 1
                self.unsure.discard(path)
                if remove:
                    del self.known[path]
                    mine.remove(path)
                else:
                    if path not in self.known:
                        mine.append(path)
                    self.known[path] = blake3(content).hexdigest()


def check(client: Client, known: dict[str, str], unsure: set[str]) -> None:
    """Every acknowledged file is there with its last content; every deleted one is gone."""
    stored: dict[str, str] = {}
    page = client.listing("/", depth=-1, limit=1000)
    while True:
        stored.update({item["path"]: item["hash"] for item in page["items"]})
        if not page["has_more"]:
            break
        page = client.listing("/", depth=-1, limit=1000, after=page["next_cursor"])
    sure = {path: content_hash for path, content_hash in known.items() if path not in unsure}
    wrong = {path for path, content_hash in sure.items() if stored.get(path) != content_hash}
    assert wrong == set()
    assert {path for path in stored if path not in known} <= unsure
    for path in random.Random(len(known)).sample(sorted(sure), min(40, len(sure))):
        assert blake3(client.read(path)).hexdigest() == sure[path]


def check_sound(path: Path, **files: bytes) -> None:
    """Opens what the kill left: every object is whole, and these files are there."""
    with Database(path, create=False) as database:
        assert verify(database).damaged == []
        version = database.at()
        for name, content in files.items():
            entry = version.get((name,))
            assert entry is not None, name
            assert version.read_all(entry) == content


@pytest.mark.timeout(2400)
def test_acknowledged_files_survive_kills_of_a_busy_server(new_server: Callable[..., Server]) -> None:
    server = new_server("busy", "--workers", "2")
    known: dict[str, str] = {}
    total = 0
    for round_number in range(ROUNDS_HTTP):
        load = Load(server.url, round_number, known)
        load.start()
        time.sleep(0.15 + 0.8 * round_number / ROUNDS_HTTP)
        server.kill()
        load.join()
        total += load.answers
        assert load.answers, "the kill came before the first answer"
        check_sound(server.database)
        client = server.start().client()
        check(client, known, load.unsure)
        for path in sorted(load.unsure):
            response = client.head(files(path))
            if response.status == 200:
                known[path] = response["X-Svc-Content-Hash"]
            else:
                known.pop(path, None)
    assert total > 100
    assert server.stop() == 0
    run_svc("verify", "-D", server.database)


def make_tree(root: Path) -> None:
    chance = random.Random(3)
    for number in range(600):
        folder = root / f"{number % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}").write_bytes(chance.randbytes(chance.choice((100, 5000, 100_000, 300_000))))


@pytest.mark.timeout(2400)
def test_a_killed_load_leaves_a_sound_file_and_can_be_repeated(tmp_path: Path) -> None:
    from svc_blackbox.trees import assert_same_tree

    source, database = tmp_path / "source", tmp_path / "killed.svcdb"
    make_tree(source)
    before = tmp_path / "before"
    before.mkdir()
    (before / "precious").write_bytes(b"stored earlier")
    run_svc("load", "-D", database, before)
    command = [svc_program(), "load", "-D", str(database), str(source)]
    started = time.monotonic()
    run_svc("load", "-D", tmp_path / "whole.svcdb", source)
    usual = time.monotonic() - started
    cut_short = 0
    for round_number in range(ROUNDS_SHELL):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=svc_environment(),
            start_new_session=True,
        )
        began = time.monotonic()
        try:
            process.wait(usual * (0.3 + 0.6 * round_number / ROUNDS_SHELL))
            # The machine has less other work than it had: the next one is killed sooner.
            usual = time.monotonic() - began
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            cut_short += 1
        process.wait()
        check_sound(database, precious=b"stored earlier")
    assert cut_short, "every load was done before it could be killed"
    run_svc("load", "-D", database, source)
    (source / "precious").write_bytes(b"stored earlier")
    run_svc("dump", "-D", database, tmp_path / "out")
    assert_same_tree(source, tmp_path / "out")
    run_svc("verify", "-D", database)
