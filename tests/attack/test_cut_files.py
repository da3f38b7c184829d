"""The file is cut short at any byte, or goes on behind its end: it is seen wherever it can be."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from attack.damaged_files import BESIDE, check_law, make
from attack.scale import SCALE, SEED, scaled
from svc.hashing import ObjectKind, hash_object
from svc.log import encode_record

WHOLE = 12
"""At this scale and above every byte is a place to cut."""


@pytest.mark.parametrize("beside", BESIDE)
def test_a_file_cut_short_is_refused_where_more_was_proved_and_else_says_what_it_lacks(
    memory: Path, beside: str
) -> None:
    made = make(memory / "x.svcdb")
    size = len(made.content)
    chance = random.Random(f"{SEED} {beside}")
    proved = made.states[{"nothing": 0}.get(beside, 2 if "older" in beside else made.last)][0]
    every = range(128, size)
    places = (
        every if SCALE >= WHOLE else sorted({*chance.sample(every, scaled(70)), size * 2 // 3, *made.ends})
    )
    outcomes: Counter[str] = Counter()
    for length in places:
        # What ends with a commit, or the mark behind it, looks like what it was before more was written.
        is_seen = length not in made.ends or length < proved
        if length == size:
            continue
        try:
            outcome = check_law(made, made.content[:length], beside, is_seen=is_seen)
            assert length >= proved or outcome == "refused"
        except BaseException as error:
            error.add_note(f"seed {SEED}, cut to {length} of {size} bytes, beside it: {beside}")
            raise
        outcomes[outcome] += 1
    assert outcomes["cut"] > 0 or beside.startswith("its directory"), outcomes


def chunk(content: bytes) -> bytes:
    return encode_record(
        ObjectKind.CHUNK, hash_object(ObjectKind.CHUNK, content), content, time_ms=1_790_000_000_000
    )


@pytest.mark.parametrize("beside", BESIDE)
def test_what_was_added_behind_the_end_is_not_called_well(memory: Path, beside: str) -> None:
    made = make(memory / "x.svcdb")
    chance = random.Random(SEED)
    commit_start = made.states[-2][0]
    additions = [
        chunk(b"a whole record"),
        chunk(b"a whole record") * 3,
        chunk(b"a torn record")[:-8],
        chance.randbytes(5),
        chance.randbytes(500),
        bytes(72),
        bytes(5000),
        made.content[commit_start:],
    ]
    for addition in additions:
        check_law(made, made.content + addition, beside, is_seen=True)
