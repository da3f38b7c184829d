"""The shared cell gives whole values only, to everyone, whoever dies."""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from svc.errors import InsufficientStorage
from svc.log import SharedCell

SIZE = 64
WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture
def cell_path(tmp_path):
    return tmp_path / "cell"


@pytest.fixture
def cell(cell_path):
    opened = SharedCell(cell_path, SIZE)
    yield opened
    opened.close()


def value(number: int) -> bytes:
    """A payload in which every part says the same, so that a mixed one shows."""
    return struct.pack("<Q", number) * (SIZE // 8)


def test_a_new_cell_has_no_value(cell):
    assert cell.read() is None


def test_every_opening_sees_the_last_value(cell, cell_path):
    other, reader = SharedCell(cell_path, SIZE), SharedCell(cell_path, SIZE, read_only=True)
    for number in range(1, 6):
        (cell if number % 2 else other).write(value(number))
        assert cell.read() == other.read() == reader.read() == value(number)
    for opened in (other, reader):
        opened.close()


def test_the_same_value_again_is_a_value(cell):
    for _ in range(3):
        cell.write(value(7))
        assert cell.read() == value(7)


def test_the_value_outlives_its_writers(cell, cell_path):
    cell.write(value(3))
    cell.close()
    cell.close()
    again = SharedCell(cell_path, SIZE)
    assert again.read() == value(3)
    again.close()


@pytest.mark.parametrize("damaged", range(0, 80, 3))
def test_a_writer_killed_at_any_byte_leaves_the_value_before(cell, cell_path, damaged):
    for number in range(1, 4):
        cell.write(value(number))
    before = cell_path.read_bytes()
    cell.write(value(4))
    after = cell_path.read_bytes()
    changed = [position for position in range(len(after)) if before[position] != after[position]]
    first, last = changed[0], changed[-1]
    # The bytes of the slot arrive in order, and the writer dies in between.
    cut = min(first + damaged, last)
    with open(cell_path, "r+b") as file:
        file.write(after[:cut] + before[cut:])
    assert cell.read() == value(3)
    cell.write(value(5))
    assert cell.read() == value(5)


def test_a_writer_sees_what_another_one_left_between_two_of_its_own_writes(cell, cell_path):
    other = SharedCell(cell_path, SIZE)
    cell.write(value(1))
    cell.write(value(2))
    left_by_cell = cell_path.read_bytes()
    other.write(value(3))
    cell.write(value(4))
    assert other.read() == cell.read() == value(4)
    # A writer that was killed: the slot that it was writing is half what it was before.
    with open(cell_path, "r+b") as file:
        file.write(left_by_cell[:64] + bytes(16) + left_by_cell[80:])
    assert cell.read() == value(2)
    cell.write(value(5))
    assert other.read() == cell.read() == value(5)
    other.close()


def test_a_cell_of_another_shape_is_emptied_and_never_shortened(cell, cell_path):
    cell.write(value(1))
    length = cell_path.stat().st_size
    smaller = SharedCell(cell_path, 8)
    assert smaller.read() is None
    smaller.write(b"12345678")
    assert cell_path.stat().st_size == length
    assert SharedCell(cell_path, 8, read_only=True).read() == b"12345678"
    assert cell.read() != value(1)
    smaller.close()


def test_reading_makes_no_file_and_finds_one_that_is_made_later(cell_path):
    reader = SharedCell(cell_path, SIZE, read_only=True)
    assert reader.read() is None
    assert not cell_path.exists()
    writer = SharedCell(cell_path, SIZE)
    writer.write(value(9))
    assert reader.read() == value(9)
    with pytest.raises(ValueError, match="not open for writing"):
        reader.write(value(1))
    reader.close()
    assert reader.read() is None
    writer.close()


def test_a_file_of_another_kind_reads_as_no_value(cell_path):
    cell_path.write_bytes(b"something else")
    reader = SharedCell(cell_path, SIZE, read_only=True)
    assert reader.read() is None
    reader.close()


def test_a_full_disk_is_named_and_the_cell_is_made_when_there_is_room_again(cell_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    try:
        with pytest.raises(InsufficientStorage, match=cell_path.name):
            SharedCell(cell_path, 8)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    made = SharedCell(cell_path, 8)
    made.write(b"eight by")
    assert made.read() == b"eight by"
    made.close()


def test_a_value_of_the_wrong_size_is_refused(cell):
    with pytest.raises(ValueError, match="holds 64 bytes"):
        cell.write(b"short")


def test_a_deleted_file_makes_an_orphan(cell, cell_path):
    assert not cell.orphaned
    cell_path.unlink()
    assert cell.orphaned
    SharedCell(cell_path, SIZE).close()
    assert cell.orphaned


def test_readers_never_see_a_mixture(cell, cell_path):
    stop = threading.Event()
    mixed = []

    def read():
        reader = SharedCell(cell_path, SIZE, read_only=True)
        last = 0
        while not stop.is_set():
            payload = reader.read()
            number = struct.unpack_from("<Q", payload)[0]
            if payload != value(number) or number < last:
                mixed.append(payload)
            last = number
        reader.close()

    cell.write(value(1))
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(2, 20_000):
        cell.write(value(number))
    stop.set()
    for thread in threads:
        thread.join()
    assert mixed == []


def test_killed_writers_never_spoil_the_value(cell, cell_path):
    last = 0
    for turn in range(2):
        command = [sys.executable, str(WORKER), "write_cell", str(cell_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout.readline() == b"started\n"
            deadline = time.monotonic() + 0.05 * (turn + 1)
            while time.monotonic() < deadline:
                payload = cell.read()
                assert payload == value(struct.unpack_from("<Q", payload)[0])
            writer.kill()
        payload = cell.read()
        number = struct.unpack_from("<Q", payload)[0]
        assert payload == value(number)
        assert number != last
        last = number
