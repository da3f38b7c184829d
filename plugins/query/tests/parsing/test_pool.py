"""Files are parsed in child processes, which are reused, bounded, and gone when nobody needs them."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from misbehaving_parsers import Echo, Misbehaving, Nested, Surroundings
from svc_query.api import ParserInput
from svc_query.parsing import ParseResult, ParserPool


def test_a_child_parses_and_is_reused(pool, source) -> None:
    first, second = (pool.parse(Echo(), b"abcd", source).document for _ in range(2))
    assert first == second
    assert first == {
        "pid": first["pid"],
        "name": "book.txt",
        "content_type": "text/plain",
        "size": 4,
        "bytes": 4,
    }
    assert first["pid"] != os.getpid()
    assert pool.children == (first["pid"],)


def test_content_comes_in_parts_or_from_a_file_and_may_be_empty(pool, source, tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(bytes(5_000_000))
    sizes = [
        pool.parse(Echo(), content, source).document["bytes"]
        for content in (path, (bytes(3_000_000) for _ in range(4)), [b"", b"a", bytearray(b"bc")], b"", [])
    ]
    assert sizes == [5_000_000, 12_000_000, 3, 0, 0]


def test_a_file_that_is_too_large_is_told_whatever_its_size_was_said_to_be(pool, source) -> None:
    expected = ParseResult(failure="It is larger than 32 MiB, so it is not parsed.")
    assert pool.parse(Echo(), [], ParserInput("a", None, 33 << 20)) == expected
    assert pool.children == ()
    endless = iter(lambda: bytes(1 << 20), None)
    assert pool.parse(Echo(), endless, source) == expected
    assert pool.parse(Echo(), b"abcd", source).document["bytes"] == 4


def test_what_reading_the_file_raises_is_raised_and_costs_the_child(pool, source) -> None:
    def torn():
        yield b"abc"
        raise LookupError("a chunk is missing")

    with pytest.raises(LookupError, match="a chunk is missing"):
        pool.parse(Echo(), torn(), source)
    assert pool.children == ()
    assert pool.parse(Echo(), b"abcd", source).failure is None


def test_a_class_within_a_class_is_found(pool, source) -> None:
    assert pool.parse(Nested.Inner(), b"", source) == ParseResult("inner")


def test_a_child_has_no_environment_no_directory_and_no_descriptors_of_others(
    pool, source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECRET", "of the server")
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), False)
        document = pool.parse(Surroundings(), b"", source).document
    assert document["environment"] == []
    assert document["directory"] == "/"
    assert document["group"]
    assert len(document["descriptors"]) == 6, document["descriptors"]


def test_a_child_ends_after_so_many_files(make_pool, source) -> None:
    pool = make_pool(parses=2)
    pids = [pool.parse(Echo(), b"", source).document["pid"] for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]
    assert pool.children == ()


def test_a_child_whose_memory_grew_is_replaced(make_pool, source) -> None:
    # How long it takes to fill the memory says nothing here.
    pool = make_pool(parse_seconds=60.0)
    before = pool.parse(Echo(), b"", source).document["pid"]
    assert pool.parse(Misbehaving(), b"keep", source) == ParseResult(None)
    assert pool.parse(Echo(), b"", source).document["pid"] != before


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"Process {pid} goes on.")


def test_an_idle_child_ends_by_itself_and_the_next_file_gets_another(make_pool, source) -> None:
    pool = make_pool(idle_seconds=0.3)
    pid = pool.parse(Echo(), b"", source).document["pid"]
    wait_for_end(pid)
    assert pool.parse(Echo(), b"", source).document["pid"] != pid
    wait_for_end(*pool.children)
    pool.trim()
    assert pool.children == ()


def test_a_child_that_was_killed_while_idle_costs_no_parse(pool, source) -> None:
    pid = pool.parse(Echo(), b"", source).document["pid"]
    os.kill(pid, 9)
    assert pool.parse(Echo(), b"", source).document["pid"] != pid


def in_threads(count: int, function) -> list:
    found: list = []
    threads = [threading.Thread(target=lambda: found.append(function())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return found


def test_many_threads_share_few_children(make_pool, source) -> None:
    pool = make_pool(parsers_at_once=2)
    pids = in_threads(16, lambda: pool.parse(Echo(), b"abcd", source).document["pid"])
    assert len(pids) == 16
    assert 1 <= len(set(pids)) <= 2
    assert set(pool.children) == set(pids)


def test_the_end_of_the_thread_that_started_a_child_does_not_end_the_child(pool, source) -> None:
    (pid,) = in_threads(1, lambda: pool.parse(Echo(), b"", source).document["pid"])
    assert pool.children == (pid,)
    assert in_threads(1, lambda: pool.parse(Echo(), b"", source).document["pid"]) == [pid]
    assert in_threads(1, lambda: pool.parse(Echo(), b"", source).document["pid"]) == [pid]


def test_closing_ends_what_runs_and_what_waits(make_pool, source) -> None:
    pool = make_pool(parsers_at_once=1, parse_seconds=60.0)
    found: list[ParseResult] = []
    threads = [
        threading.Thread(target=lambda: found.append(pool.parse(Misbehaving(), b"sleep", source)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    while not pool.children and time.monotonic() < deadline:
        time.sleep(0.01)
    pool.close()
    for thread in threads:
        thread.join(30)
    stopped = ParseResult(failure="The process that parses files was stopped.", transient=True)
    assert found == [stopped] * 3
    assert pool.parse(Echo(), b"", source) == stopped
    assert pool.children == ()


def test_a_pool_without_a_program_to_start_says_so(
    pool, source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "absent"))
    result = pool.parse(Echo(), b"", source)
    assert result.transient
    assert result.failure is not None
    assert result.failure.startswith("No process could be started for the parser echo: ")
    monkeypatch.undo()
    assert pool.parse(Echo(), b"", source).failure is None


def test_a_pool_begins_anew_after_a_fork(pool: ParserPool, source) -> None:
    pid = pool.parse(Echo(), b"", source).document["pid"]
    forked = os.fork()
    if not forked:
        code = 1
        try:
            mine = pool.parse(Echo(), b"", source).document["pid"]
            pool.close()
            code = 0 if mine != pid else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert pool.parse(Echo(), b"", source).document["pid"] == pid
