"""How sizes, counts and names are shown."""

from __future__ import annotations

import pytest

from svc_cli import time_text
from svc_files.commands.output import count_of, printable, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (999, "999B"),
        (1023, "1.0K"),
        (1024, "1.0K"),
        (10_240, "10K"),
        (1_048_575, "1.0M"),
        (3 << 40, "3.0T"),
    ],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert size_text(size) == text


def test_counts_agree_with_their_noun() -> None:
    assert count_of(1, "file") == "1 file"
    assert count_of(2_000, "empty directory") == "2,000 empty directories"


def test_names_cannot_speak_to_the_terminal() -> None:
    assert printable("a\x1b[2Jb") == "a\\x1b[2Jb"
    assert printable("bad-\udcff") == "bad-\\xff"


def test_times_beyond_the_calendar_are_no_error() -> None:
    assert time_text(10**18) == "-"
    assert time_text(0).startswith("19")
