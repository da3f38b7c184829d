"""Where blocking work runs when nobody says otherwise: in place, and without gevent."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from svc.database import Database
from svc.executor import Executor, current_executor, in_turns, run_blocking, use_executor

_PLAIN = """
import io, sys
sys.modules.update({name: None for name in ("gevent", "gunicorn", "greenlet", "svc_server", "svc_worker")})
import svc
from svc.database import pause, run_blocking
path = sys.argv[1]
with svc.Database(path) as database:
    with database.transaction() as transaction:
        transaction.put(("large",), database.store(io.BytesIO(bytes(3_000_000))))
    pause()
with svc.Database(path, create=False) as database:
    version = database.at()
    print(len(version.read_all(version.get(("large",)))), run_blocking(pow, 2, 5))
"""


def test_the_kernel_works_where_there_is_no_gevent_and_no_gunicorn(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PLAIN, str(tmp_path / "x.svcdb")], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["3000000", "32"], done.stderr


def test_everything_runs_in_place_and_raises_there() -> None:
    executor = Executor()
    here = threading.current_thread()
    assert executor.run(threading.current_thread) is here
    assert executor.run_reserved(threading.current_thread) is here
    assert executor.begin(pow, 2, 5)() == 32
    wait = executor.begin(pow, 2, "five")
    with pytest.raises(TypeError):
        wait()
    ran = []
    executor.run_shielded(lambda: ran.append(1))
    executor.pause()
    assert ran == [1]


class Recording(Executor):
    def __init__(self) -> None:
        self.called: list[str] = []

    def run_reserved(self, function):
        self.called.append("reserved")
        return super().run_reserved(function)

    def run_shielded(self, function):
        self.called.append("shielded")
        super().run_shielded(function)

    def run(self, function, *args):
        self.called.append("run")
        return super().run(function, *args)


def test_a_database_asks_the_executor_that_it_was_given(tmp_path) -> None:
    given, process = Recording(), Recording()
    before = current_executor()
    use_executor(process)
    try:
        with (
            Database(tmp_path / "x.svcdb", executor=given) as database,
            database.transaction() as transaction,
        ):
            transaction.put(("a",), b"one")
        assert {"reserved", "shielded"} <= set(given.called)
        assert process.called == []
        assert run_blocking(pow, 2, 5) == 32
        with Database(tmp_path / "x.svcdb") as database, database.transaction() as transaction:
            transaction.put(("a",), b"two")
        assert {"run", "reserved", "shielded"} <= set(process.called)
    finally:
        use_executor(before)


def test_in_turns_gives_every_item_once_and_none_ahead() -> None:
    taken = []

    def items(count: int):
        for number in range(count):
            taken.append(number)
            yield number

    for count in (0, 1, 255, 256, 257, 1000):
        assert list(in_turns(items(count))) == list(range(count))
    taken.clear()
    assert next(in_turns(items(1000))) == 0
    assert taken == [0]


def test_in_turns_others_run_after_many_items_and_after_dear_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = []
    monkeypatch.setattr("svc.executor.pause", lambda: turns.append(1))
    assert list(in_turns(range(256 * 3))) == list(range(256 * 3))
    assert len(turns) >= 3
    turns.clear()
    for _ in in_turns(range(5)):
        time.sleep(0.003)
    assert len(turns) == 5
