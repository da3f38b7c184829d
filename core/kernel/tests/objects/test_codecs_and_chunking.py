"""Contents are cut where their bytes say, and stored compressed where that pays."""

from __future__ import annotations

import random
import struct

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.errors import CorruptRecord
from svc.objects.chunking import MAXIMUM_CHUNK, MINIMUM_CHUNK, Chunker, Window
from svc.objects.codecs import Codec, CompressionTrial, compress, decompress
from svc.objects.expected_chunks import ExpectedChunks


def chunks_of(content: bytes, pieces: list[int]) -> list[bytes]:
    """Cuts a content that arrives in pieces of the given sizes, and a last one."""
    chunker, window, chunks = Chunker(), Window(), []
    position = 0
    for size in [*pieces, len(content)]:
        rest = content[position : position + size]
        position += size
        while rest:
            room = window.room
            part, rest = rest[: len(room)], rest[len(room) :]
            room[: len(part)] = part
            window.size += len(part)
            if len(part) == len(room):
                chunks += [bytes(chunk) for _, chunk in chunker.cut(window)]
                window.size = 0
    return chunks + [bytes(chunk) for _, chunk in chunker.cut(window, is_last=True)]


@given(st.binary(max_size=9000))
def test_what_is_compressed_comes_back(content: bytes) -> None:
    codec, stored = compress(content)
    assert decompress(codec, stored, len(content)) == content
    assert codec is Codec.RAW or len(stored) <= len(content) * 0.95


def test_short_and_incompressible_contents_stay_raw() -> None:
    assert compress(b"a" * 4095)[0] is Codec.RAW
    assert compress(b"a" * 4096)[0] is Codec.ZSTD
    assert compress(random.Random(1).randbytes(100_000))[0] is Codec.RAW


@pytest.mark.parametrize(
    ("codec", "stored", "size"),
    [
        (0, b"abc", 4),
        (1, b"not zstd", 8),
        (1, zstandard.compress(b"a" * 10_000), 9_999),
        (1, zstandard.compress(b"a" * 10_000)[:-3], 10_000),
        (1, zstandard.ZstdCompressor(write_content_size=False).compress(b"a" * 10_000), 10_000),
        (7, b"abc", 3),
    ],
    ids=["other size", "no frame", "size that lies", "cut short", "no size", "unknown codec"],
)
def test_a_damaged_stored_form_is_refused(codec: int, stored: bytes, size: int) -> None:
    with pytest.raises(CorruptRecord):
        decompress(codec, stored, size)


def test_a_bomb_produces_no_more_than_its_header_states() -> None:
    bomb = zstandard.compress(bytes(50_000_000))
    with pytest.raises(CorruptRecord):
        decompress(1, bomb, 1000)


def test_a_trial_gives_up_on_noise_and_returns_to_text() -> None:
    trial = CompressionTrial()
    noise = random.Random(2).randbytes(8192)
    for _ in range(40):
        assert trial.compress(noise)[0] is Codec.RAW
    codecs = [trial.compress(b"text " * 2000)[0] for _ in range(20)]
    assert Codec.ZSTD in codecs
    assert codecs[-1] is Codec.ZSTD


GOLDEN_LENGTHS = [26323, 98879, 85666, 82841, 82086, 111471, 116521, 81930, 251315, 62968]


@given(st.integers(0, 2**32), st.lists(st.integers(1, 700_000), max_size=6))
def test_chunks_do_not_depend_on_how_the_bytes_arrive(seed: int, pieces: list[int]) -> None:
    content = random.Random(seed).randbytes(1_800_000)
    whole = chunks_of(content, [])
    assert b"".join(whole) == content
    assert chunks_of(content, pieces) == whole
    assert all(MINIMUM_CHUNK <= len(chunk) <= MAXIMUM_CHUNK for chunk in whole[:-1])


def test_chunk_boundaries_are_those_of_the_format() -> None:
    """Golden vector: another boundary would give another root hash to the same files."""
    numbers = struct.pack("<250000I", *(number * 2654435761 % 2**32 for number in range(250_000)))
    assert [len(chunk) for chunk in chunks_of(numbers, [])] == GOLDEN_LENGTHS


def cut_with(expected: ExpectedChunks | None, content: bytes) -> list[tuple[bytes, bytes]]:
    """The chunks of a content, each behind its hash."""
    chunker, window = Chunker(expected=expected), Window()
    chunks: list[tuple[bytes, bytes]] = []
    for begin in range(0, len(content), 1 << 20):
        part = content[begin : begin + (1 << 20)]
        window.size = 0
        window.room[: len(part)] = part
        window.size = len(part)
        chunks += [(hash, bytes(chunk)) for hash, chunk in chunker.cut(window, is_last=len(part) < 1 << 20)]
    return chunks


@given(
    size=st.integers(100_000, 2_500_000),
    edits=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 200_000), st.integers(0, 200_000)), min_size=0, max_size=4
    ),
    seed=st.integers(0, 5),
)
@settings(max_examples=60)
def test_what_a_content_is_expected_to_hold_changes_no_boundary(
    size: int, edits: list[tuple[float, int, int]], seed: int
) -> None:
    source = random.Random(seed)
    old = source.randbytes(size)
    new = old
    for place, removed, inserted in edits:
        at = int(place * len(new))
        new = new[:at] + source.randbytes(inserted) + new[at + removed :]
    new = new[: len(new) - (len(new) % (1 << 20) == 0)]
    before = [(hash, len(chunk)) for hash, chunk in cut_with(None, old[: len(old) - 1])]
    assert cut_with(ExpectedChunks(before), new) == cut_with(None, new)


def test_chunks_that_are_expected_and_come_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    content = random.Random(2).randbytes(3_000_000)
    chunks = cut_with(None, content)
    expected = ExpectedChunks([(hash, len(chunk)) for hash, chunk in chunks])
    changed = bytearray(content)
    changed[1_500_000] ^= 1
    asked: list[int] = []
    note = expected.note
    monkeypatch.setattr(expected, "note", lambda hash: (asked.append(1), note(hash)))
    found = cut_with(expected, bytes(changed))
    assert b"".join(chunk for _, chunk in found) == changed
    assert len(found) == len(chunks)
    # The one that has changed, what is cut until one comes that both have, and the end.
    assert len(asked) <= 5
