"""What stands at the end of a log is described: whole, damaged, never finished, nothing."""

from __future__ import annotations

import pytest

from svc.hashing import ObjectKind, hash_object
from svc.log import Remains, encode_record, survey_remains


def framed(content: bytes, kind: ObjectKind = ObjectKind.CHUNK) -> bytes:
    return encode_record(kind, hash_object(kind, content), content, time_ms=1)


def commit(content: bytes) -> bytes:
    return framed(content, ObjectKind.COMMIT)


def flipped(record: bytes, position: int) -> bytes:
    return record[:position] + bytes([record[position] ^ 1]) + record[position + 1 :]


def survey(content: bytes) -> Remains:
    return survey_remains(lambda offset, length: content[offset : offset + length], 0, len(content))


NOISE = bytes(range(1, 201))


@pytest.mark.parametrize(
    ("content", "words", "may_hold_commit"),
    [
        (bytes(5000), "nothing but zeros", False),
        (framed(b"a"), "1 whole record", True),
        (framed(b"a") + commit(b"c") + commit(b"d"), "3 whole records (2 commits)", True),
        (framed(b"a long one")[:-8], "80 bytes of a record that is unfinished or cut short", False),
        (framed(b"a")[:50], "50 bytes of a record that is unfinished or cut short", False),
        (commit(b"a long one")[:-8], "80 bytes of a commit that is unfinished or cut short", True),
        (flipped(framed(b"a"), 72), "1 record that is whole in length and damaged in content", True),
        (
            flipped(commit(b"c"), 72) + flipped(commit(b"d"), 72),
            "2 records (2 commits) that are whole in length and damaged in content",
            True,
        ),
        (flipped(commit(b"c"), 30), "80 bytes in which no record can be read", True),
        (NOISE[:72], "72 bytes in which no record can be read", False),
        (commit(b"a long one")[:72], "72 bytes of a commit that is unfinished or cut short", True),
        (NOISE, "200 bytes in which no record can be read", True),
        (
            framed(b"a") + flipped(framed(b"b"), 72) + NOISE + commit(b"c")[:75],
            (
                "1 whole record, 1 record that is whole in length and damaged in content, 200 bytes in which "
                "no record can be read and 75 bytes of a commit that is unfinished or cut short"
            ),
            True,
        ),
        (
            encode_record(9, bytes(32), b"from the future", time_ms=1),
            "88 bytes in which no record can be read",
            True,
        ),
    ],
)
def test_what_is_there_is_said_in_words(content: bytes, words: str, may_hold_commit: bool) -> None:
    remains = survey(content)
    assert remains.describe() == words
    assert remains.may_hold_commit == may_hold_commit
    assert remains.size == len(content)


def test_commits_are_counted_whatever_became_of_them() -> None:
    content = commit(b"whole") + flipped(commit(b"damaged"), 73) + framed(b"a") + commit(b"unfinished")[:-8]
    remains = survey(content)
    assert (remains.commits, remains.damaged_commits, remains.unfinished_commit) == (1, 1, True)
    assert remains.possible_commits == 3


def test_records_within_a_record_that_is_only_unfinished_are_not_counted() -> None:
    torn = framed(commit(b"foreign") * 3)[:-16]
    assert survey(torn).is_only_unfinished
    assert not survey(torn).may_hold_commit
