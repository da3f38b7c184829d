"""The file as a process follows it: changes, and everything that can go wrong with a file."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

import pytest

from svc.errors import InvalidInput
from svc_auth_file.copies import KeptCopy, copy_of
from svc_auth_file.source import LARGEST_FILE, LOOK_SECONDS, UsersSource, read_users


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines(*names: str) -> str:
    return "".join(f'[[users]]\nusername = "{name}"\n' for name in names)


def names(source: UsersSource) -> list[str]:
    return [user.username for user in source.current().users]


def fail(*arguments: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "users.toml"
    file.write_text(lines("ann"))
    return file


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copy_of(tmp_path / "state", "/users.toml")


@pytest.fixture
def source(file: Path, copy: Path, clock: Clock) -> UsersSource:
    return UsersSource(str(file), copy, clock)


def test_a_change_is_seen_within_a_second_and_not_looked_for_more_often(
    source: UsersSource, file: Path, clock: Clock
) -> None:
    before = source.current()
    file.write_text(lines("ann", "bob"))
    clock.now += LOOK_SECONDS / 2
    assert source.current() is before
    clock.now += LOOK_SECONDS
    assert names(source) == ["ann", "bob"]


def test_the_users_are_the_same_object_while_the_file_says_the_same(
    source: UsersSource, file: Path, clock: Clock
) -> None:
    before = source.current()
    for _ in range(3):
        clock.now += 2
        file.write_text(lines("ann"))
        assert source.current() is before


def test_a_file_that_takes_its_place_is_seen(source: UsersSource, file: Path, clock: Clock) -> None:
    new = file.with_name("new")
    new.write_text(lines("bob"))
    os.utime(new, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    new.replace(file)
    clock.now += 2
    assert names(source) == ["bob"]


def test_a_change_of_the_same_length_within_one_tick_of_the_clock_is_seen(
    source: UsersSource, file: Path, clock: Clock
) -> None:
    for name in ("bob", "eve", "ann", "bob"):
        file.write_text(lines(name))
        clock.now += 2
        assert names(source) == [name]


def test_a_link_is_followed_where_it_leads_now(tmp_path: Path, file: Path, clock: Clock) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    source = UsersSource(str(link), None, clock)
    other = tmp_path / "other"
    other.write_text(lines("bob"))
    link.unlink()
    link.symlink_to(other)
    clock.now += 2
    assert names(source) == ["bob"]


def broken(file: Path, how: str) -> None:
    file.unlink()
    if how == "directory":
        file.mkdir()
    elif how == "pipe":
        os.mkfifo(file)
    elif how == "dangling link":
        file.symlink_to("nowhere")
    elif how == "circle":
        file.symlink_to(file.name)
    elif how == "device":
        file.symlink_to("/dev/zero")
    elif how == "empty":
        file.write_text("")
    elif how == "no TOML":
        file.write_text("[[users]\n")
    elif how == "too large":
        file.write_bytes(b"#" * (LARGEST_FILE + 1))
    elif how == "for all to write":
        file.write_text(lines("eve"))
        file.chmod(0o666)
    else:
        assert how == "gone"


BROKEN = {
    "gone": "No such file",
    "directory": "It is a directory.",
    "pipe": "It is no regular file.",
    "dangling link": "No such file",
    "circle": "It can't be read",
    "device": "It is no regular file.",
    "empty": "It is empty.",
    "no TOML": "at line 1",
    "too large": "larger than 4 MiB",
    "for all to write": "Everybody on this machine may write it",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_told_of_and_the_last_good_one_counts_until_it_is_mended(
    source: UsersSource, file: Path, clock: Clock, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = source.current()
    broken(file, how)
    for _ in range(3):
        clock.now += 2
        assert source.current() is before
    assert source.problem is not None
    assert str(file) in source.problem
    assert BROKEN[how] in source.problem
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(told) == 1, "once, not with every look"
    if file.is_dir():
        file.rmdir()
    else:
        file.unlink(missing_ok=True)
    file.write_text(lines("ann", "bob"))
    clock.now += 2
    assert names(source) == ["ann", "bob"]
    assert source.problem is None


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_refused_at_the_beginning(file: Path, how: str) -> None:
    broken(file, how)
    with pytest.raises(InvalidInput) as caught:
        read_users(str(file))
    assert str(file) in caught.value.message
    assert BROKEN[how] in caught.value.message
    with pytest.raises(InvalidInput):
        UsersSource(str(file), None)


def test_the_same_content_is_good_again_after_a_break(source: UsersSource, file: Path, clock: Clock) -> None:
    before, content = source.current(), file.read_text()
    broken(file, "gone")
    clock.now += 2
    source.current()
    assert source.problem is not None
    file.write_text(content)
    clock.now += 2
    assert source.current() is before
    assert source.problem is None


def test_an_unreadable_file_is_told_of(source: UsersSource, file: Path, clock: Clock) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    file.chmod(0)
    clock.now += 2
    source.current()
    assert source.problem is not None
    assert "Permission denied" in source.problem


def test_a_process_that_begins_while_the_file_is_broken_takes_the_last_good_one(
    source: UsersSource, file: Path, copy: Path, clock: Clock
) -> None:
    file.write_text(lines("ann", "bob"))
    clock.now += 2
    source.current()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in copy.parent.iterdir()] == [copy.name]
    broken(file, "no TOML")
    begun = UsersSource(str(file), copy, clock)
    assert names(begun) == ["ann", "bob"]
    assert begun.problem is not None
    file.write_text(lines("eve"))
    clock.now += 2
    assert names(begun) == ["eve"]
    assert begun.problem is None


def test_who_never_saw_the_last_good_file_takes_it_from_the_copy_of_who_did(
    file: Path, copy: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(lines("ann", "bob"))
    quick, slow = UsersSource(str(file), copy, clock), UsersSource(str(file), copy, clock)
    file.write_text(lines("ann"))
    clock.now += 2
    assert names(quick) == ["ann"]
    broken(file, "no TOML")
    clock.now += 2
    assert names(slow) == ["ann"], "bob was removed by a good file"
    assert names(quick) == ["ann"]
    assert slow.problem is not None
    assert "another process has kept" in caplog.text


def test_a_copy_that_comes_after_the_break_is_taken_too(file: Path, copy: Path, clock: Clock) -> None:
    file.write_text(lines("ann", "bob"))
    quick, slow = UsersSource(str(file), copy, clock), UsersSource(str(file), copy, clock)
    content = lines("ann").encode()
    read_ns = time.time_ns()
    broken(file, "gone")
    clock.now += 2
    assert names(slow) == ["ann", "bob"]
    KeptCopy(copy).keep(content, read_ns)  # somebody took a second to read it
    clock.now += 2
    assert names(slow) == names(quick) == ["ann"]


def test_who_has_read_the_same_as_before_after_others_read_something_else_stays_with_it(
    file: Path, copy: Path, clock: Clock
) -> None:
    """Two changes within a second: one process has seen both states, the other one the last state only."""
    both = UsersSource(str(file), copy, clock)
    last = UsersSource(str(file), copy, Clock())
    file.write_text(lines("bob"))
    clock.now += 2
    assert names(both) == ["bob"]
    file.write_text(lines("ann"))
    last._next_look = 0.0
    assert names(last) == ["ann"]
    broken(file, "gone")
    clock.now += 2
    last._next_look = 0.0
    assert names(last) == names(both) == ["ann"]


def test_an_older_copy_takes_no_newer_users_away(
    file: Path, copy: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = UsersSource(str(file), copy, clock)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        file.write_text(lines("bob"))
        clock.now += 2
        assert names(source) == ["bob"]
    broken(file, "gone")
    clock.now += 2
    assert names(source) == ["bob"], "it could not be kept, and is newer than what was"


def test_what_was_read_before_is_not_kept_over_what_was_read_after(copy: Path) -> None:
    kept, now_ns = KeptCopy(copy), time.time_ns()
    kept.keep(b"new", now_ns - 10)
    kept.keep(b"old", now_ns - 20)
    assert kept.read() == (b"new", now_ns - 10)
    kept.keep(b"new", now_ns - 5)
    assert kept.read() == (b"new", now_ns - 5)


def test_a_copy_from_the_future_does_not_last(copy: Path) -> None:
    kept, now_ns = KeptCopy(copy), time.time_ns()
    kept.keep(b"of a clock that was wrong", now_ns + 10**18)
    kept.keep(b"new", now_ns)
    assert kept.read() == (b"new", now_ns)


def test_the_file_is_looked_at_once_a_second_though_nobody_asks(file: Path) -> None:
    source = UsersSource(str(file), None)
    source.follow()
    try:
        file.write_text(lines("bob"))
        deadline = time.monotonic() + 30
        while [user.username for user in source._users.users] != ["bob"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        source.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "svc-users-file"]


def test_what_fails_unforeseen_ends_no_following(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("svc_auth_file.source.LOOK_SECONDS", 0.01)
    source = UsersSource(str(file), None)
    failures = [RuntimeError("odd"), RuntimeError("odd")]
    monkeypatch.setattr(source, "current", lambda: fail(*failures.pop(0).args) if failures else None)
    source.follow()
    deadline = time.monotonic() + 30
    while failures:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    source.stop()
    assert "could not be looked at" in caplog.text


@pytest.mark.parametrize("content", [b"", b"[[users]\n", b"\xff"])
def test_a_copy_that_is_broken_too_is_no_way_in(file: Path, copy: Path, content: bytes) -> None:
    copy.parent.mkdir(parents=True)
    copy.write_bytes(content)
    broken(file, "gone")
    with pytest.raises(InvalidInput):
        UsersSource(str(file), copy)


def test_a_copy_that_can_not_be_written_keeps_nobody_out(file: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a directory is needed")
    assert names(UsersSource(str(file), copy_of(tmp_path / "state", str(file)))) == ["ann"]


def test_two_files_have_two_copies(tmp_path: Path) -> None:
    assert copy_of(tmp_path, "/a.toml") != copy_of(tmp_path, "/b.toml")


def test_many_threads_see_whole_states(source: UsersSource, file: Path, clock: Clock) -> None:
    seen: set[tuple[str, ...]] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add(tuple(names(source)))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    states = [("ann",), ("bob", "eve"), ("ann", "bob", "eve")]
    for round_ in range(30):
        new = file.with_name("new")
        new.write_text(lines(*states[round_ % 3]))
        new.replace(file)
        clock.now += 2
    stop.set()
    for thread in threads:
        thread.join()
    clock.now += 2
    assert tuple(names(source)) == states[29 % 3]
    assert seen <= set(states)
