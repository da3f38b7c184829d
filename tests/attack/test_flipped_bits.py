"""One bit flips, in any byte of the file: it is named, and nothing that can be read is lost."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from attack.damaged_files import BESIDE, check_law, make
from attack.scale import SCALE, SEED, scaled

WHOLE = 12
"""At this scale and above every byte is hit."""


@pytest.mark.parametrize("beside", BESIDE)
def test_a_flipped_bit_is_never_called_well_and_loses_nothing_silently(memory: Path, beside: str) -> None:
    made = make(memory / "x.svcdb")
    size = len(made.content)
    chance = random.Random(f"{SEED} {beside}")
    places = range(size) if SCALE >= WHOLE else sorted(chance.sample(range(size), min(size, scaled(70))))
    outcomes: Counter[str] = Counter()
    for place in places:
        bit = chance.randrange(8)
        content = bytearray(made.content)
        content[place] ^= 1 << bit
        try:
            outcomes[check_law(made, bytes(content), beside, is_seen=True)] += 1
        except BaseException as error:
            error.add_note(f"seed {SEED}, byte {place} of {size}, bit {bit}, beside it: {beside}")
            raise
    if beside.startswith("its directory"):
        assert outcomes["cut"] == 0, outcomes
    assert outcomes["named"] > 0, outcomes


@pytest.mark.parametrize("beside", BESIDE)
def test_noise_and_zeros_behind_the_header_are_not_called_a_database(memory: Path, beside: str) -> None:
    made = make(memory / "x.svcdb")
    chance = random.Random(SEED)
    for rest in (
        bytes(4000),
        chance.randbytes(4000),
        bytes(len(made.content)),
        chance.randbytes(64),
        bytes(8),
    ):
        outcome = check_law(made, made.content[:128] + rest, beside, is_seen=True)
        assert outcome == ("cut" if beside == "nothing" else "refused")
