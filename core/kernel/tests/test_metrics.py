"""What processes count is added up, whichever of them has ended, and however."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svc.metrics import Counter, Histogram, counting_processes, read_metrics

COUNT = """
import os, signal, sys
from pathlib import Path
from svc.metrics import Counter, Histogram, Level, begin_metrics
before = Counter("t_before", "Counted before the process shares.", ("who",))
before.add(2, "a")
begin_metrics(Path(sys.argv[1]), *map(int, sys.argv[2:]))
before.add(1, "a")
sizes = Histogram("t_sizes", "Sizes.", bounds=(1, 10))
for size in (0.5, 1, 5, 50):
    sizes.observe(size)
streams = Level("t_streams", "Streams.", ("kind",))
streams.add(3, "a")
streams.add(-1, "a")
print("ready", flush=True)
sys.stdin.readline()
"""


def start(directory: Path, *server: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", COUNT, str(directory), *map(str, server)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("\n")


def totals(directory: Path) -> dict[str, tuple[float, ...]]:
    return {one.declared.name: one.values for one in read_metrics(directory)}


def test_what_two_processes_count_is_added_up(tmp_path: Path) -> None:
    both = [start(tmp_path), start(tmp_path)]
    assert totals(tmp_path) == {
        "t_before": (6.0,),
        "t_sizes": (4.0, 2.0, 2.0, 113.0),
        "t_streams": (4.0,),
    }
    assert counting_processes(tmp_path) == sorted(process.pid for process in both)
    for process in both:
        end(process)


def test_nothing_is_lost_with_a_process_that_is_killed(tmp_path: Path) -> None:
    stays = start(tmp_path)
    for _ in range(3):
        killed = start(tmp_path)
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
        assert stays.pid in counting_processes(tmp_path)
        assert killed.pid not in counting_processes(tmp_path)
        # A level ends with its process.
        assert totals(tmp_path)["t_streams"] == (2.0,)
    assert totals(tmp_path)["t_before"] == (12.0,)
    last = start(tmp_path)
    # What those that have ended left is in one file now, and counted once.
    assert len(list((tmp_path / "counters").glob("*.series"))) == 2
    assert totals(tmp_path)["t_before"] == (15.0,)
    assert totals(tmp_path)["t_streams"] == (4.0,)
    end(stays)
    end(last)


def test_a_server_that_starts_alone_begins_with_zero(tmp_path: Path) -> None:
    end(start(tmp_path))
    assert totals(tmp_path)["t_before"] == (3.0,)
    again = start(tmp_path)
    assert totals(tmp_path)["t_before"] == (3.0,)
    end(again)


def test_a_server_all_of_whose_processes_are_replaced_goes_on_counting(tmp_path: Path) -> None:
    server = subprocess.Popen(["sleep", "600"])
    for number in (1, 2, 3):
        replaced = start(tmp_path, server.pid)
        assert totals(tmp_path)["t_before"] == (3.0 * number,)
        assert counting_processes(tmp_path) == [replaced.pid]
        end(replaced)
    server.kill()
    server.wait()
    other = start(tmp_path, os.getpid())
    assert totals(tmp_path)["t_before"] == (3.0,)
    end(other)


def test_a_server_that_is_dead_and_still_listed_keeps_nothing(tmp_path: Path) -> None:
    server = subprocess.Popen(["sleep", "600"])
    end(start(tmp_path, server.pid))
    server.kill()
    os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
    again = start(tmp_path)
    assert totals(tmp_path)["t_before"] == (3.0,)
    end(again)
    server.wait()


def test_a_kill_between_two_steps_of_adding_up_counts_nothing_twice(tmp_path: Path) -> None:
    stays = start(tmp_path)
    end(start(tmp_path))
    left = {path.name: path.read_bytes() for path in (tmp_path / "counters").glob("*.*")}
    third = start(tmp_path)
    before = totals(tmp_path)
    for name, content in left.items():
        if not (tmp_path / "counters" / name).exists() and name != "ended.new":
            (tmp_path / "counters" / name).write_bytes(content)
    assert totals(tmp_path) == before
    end(third)
    end(start(tmp_path))
    assert totals(tmp_path)["t_before"] == (12.0,)
    end(stays)


@pytest.mark.parametrize("content", [b"", b"rot", b'["t", "t", null, [], 9999999]\n', b'{"a": 1}\n[1, 2]\n'])
def test_what_cannot_be_read_is_left_out(tmp_path: Path, content: bytes) -> None:
    process = start(tmp_path)
    directory = tmp_path / "counters"
    (directory / "1-1.series").write_bytes(content)
    (directory / "1-1.values").write_bytes(b"short")
    (directory / "2-2.series").write_bytes(content)
    (directory / "ended.json").write_bytes(content)
    assert totals(tmp_path)["t_before"] == (3.0,)
    end(process)


@pytest.mark.parametrize(
    "values", [["1"], [None], [], [1.0, 2.0], [float("nan")], [float("inf")], "1", 1, [[1]]], ids=repr
)
def test_rotten_counts_of_those_that_ended_stop_nobody(tmp_path: Path, values: object) -> None:
    stays = start(tmp_path)
    rotten = {
        "series": [["t_before", "T.", None, [["who", "a"]], False, values]],
        "processes": [],
        "servers": [],
    }
    (tmp_path / "counters" / "ended.json").write_text(json.dumps(rotten))
    assert totals(tmp_path)["t_before"] == (3.0,)
    later = start(tmp_path)
    assert totals(tmp_path)["t_before"] == (6.0,)
    end(later)
    end(stays)


@pytest.mark.parametrize("first", [-1, 10**6, 1.5, "0", None])
def test_a_series_without_its_slots_is_left_out(tmp_path: Path, first: object) -> None:
    process = start(tmp_path)
    (file,) = (tmp_path / "counters").glob("*.series")
    with file.open("ab") as series:
        series.write(json.dumps(["t_rotten", "T.", None, [], False, first]).encode() + b"\n")
    assert set(totals(tmp_path)) == {"t_before", "t_sizes", "t_streams"}
    end(process)


def test_a_metric_has_so_many_series_at_most() -> None:
    counter = Counter("t_many", "Many.", ("number",))
    for number in range(600):
        counter.add(1, str(number))
    assert len(counter._first) == 501
    histogram = Histogram("t_no_room", "No room.", ("number",), bounds=range(1, 100))
    for number in range(1_000):
        histogram.observe(1, str(number))


def test_a_full_disk_ends_no_process(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("this needs the right to mount")
    try:
        process = start(small)
        assert process.poll() is None
        end(process)
        assert process.returncode == 0
        assert totals(small) == {}
    finally:
        subprocess.run(["umount", str(small)], check=True)
