"""The bytes of registers: what the page says, back and forth, and what is no register."""

from __future__ import annotations

import re
from pathlib import Path

import cbor2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from svc_sync.encoding import (
    FORMAT,
    MAXIMUM_DOCUMENT_BYTES,
    MAXIMUM_REGISTER_BYTES,
    decode_register,
    encode_register,
)
from svc_sync.registers import STABLE, Dot, Register, Version
from svc_sync.values import Directory, Document, Reference

from svc.errors import CorruptRecord, UnsupportedFormat
from svc.plugin import Entry, EntryKind

PAGE = (Path(__file__).parents[3] / "docs" / "format" / "sync-registers.md").read_text(encoding="utf-8")
PRINTED = {
    name: "".join(body.split())
    for name, body in re.findall(r"```text\nvector ([a-z-]+)\n(.*?)```", PAGE, re.DOTALL)
}
A, B = 0x1122334455667788, 0x0102030405060708
MS = 1_750_000_000_000
VT = MS << 16
PATTERN, RECORD = bytes(range(32)), bytes(range(32, 64))
HELLO = Entry(EntryKind.FILE, PATTERN, 6, MS, MS + 1, "text/plain")
MOVIE = Entry(EntryKind.FILE, PATTERN, 1 << 30, MS, MS + 1, None, RECORD)
LATEST = Entry(EntryKind.SYMLINK, PATTERN, 10, MS, MS, target="/hello.txt")
VECTORS = {
    "deletion": Register({A: VT}, {Dot(VT, A): Version(None)}),
    "file": Register({A: VT}, {Dot(VT, A): Version(HELLO, fresh=True)}),
    "conflict": Register(
        {A: VT + 1, B: VT + 2},
        {Dot(VT, A): Version(MOVIE, parked=True), Dot(VT + 2, B): Version(LATEST)},
    ),
    "stable": Register({B: VT}, {STABLE: Version(Directory(MS)), Dot(VT, B): Version(HELLO, parked=True)}),
    "system": Register(
        {A: VT, B: VT}, {Dot(VT, A): Version(Document(b"{}")), Dot(VT, B): Version(Reference(PATTERN))}
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_of_the_page_is_what_the_code_makes(name):
    assert encode_register(VECTORS[name]).hex() == PRINTED[name]
    assert decode_register(bytes.fromhex(PRINTED[name])) == VECTORS[name]


def test_all_vectors_of_the_page_are_checked():
    assert set(PRINTED) == set(VECTORS)


def test_the_page_is_enough_to_read_a_register():
    number, context, versions = cbor2.loads(bytes.fromhex(PRINTED["conflict"]))
    writers, times = context[::2], context[1::2]
    assert number == 1
    assert writers == sorted(writers) == [B, A]
    found = {(times[place] - age, writers[place]): (flags, value) for place, age, flags, value in versions}
    assert found == {
        (VT, A): (1, [2, PATTERN, 1 << 30, MS, MS + 1, None, RECORD]),
        (VT + 2, B): (0, [8, PATTERN, 10, MS, MS, "/hello.txt"]),
    }


def test_the_page_says_how_long_registers_are():
    for name in ("deletion", "file"):
        assert f"{len(encode_register(VECTORS[name]))} bytes" in PAGE


NUMBERS = st.integers(0, (1 << 63) - 1)
HASHES = st.binary(min_size=32, max_size=32)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
FILES = st.builds(
    Entry, st.just(EntryKind.FILE), HASHES, NUMBERS, NUMBERS, NUMBERS, st.none() | TEXTS, st.none() | HASHES
)
LINKS = st.builds(
    lambda content, size, ms, target: Entry(EntryKind.SYMLINK, content, size, ms, ms, target=target),
    HASHES, NUMBERS, NUMBERS, TEXTS,
)  # fmt: skip
VALUES = st.one_of(
    st.none(),
    FILES,
    LINKS,
    st.builds(Directory, NUMBERS),
    st.builds(Document, st.binary(max_size=20)),
    st.builds(Reference, HASHES),
)


@st.composite
def registers(draw):
    context = draw(st.dictionaries(st.integers(1, (1 << 63) - 1), NUMBERS, min_size=1, max_size=4))
    dots = st.sampled_from(sorted(context)).flatmap(
        lambda writer: st.builds(Dot, st.integers(0, context[writer]), st.just(writer))
    )
    chosen = draw(st.lists(dots | st.just(STABLE), min_size=1, max_size=5, unique=True))
    versions = {dot: Version(draw(VALUES), draw(st.booleans()), draw(st.booleans())) for dot in chosen}
    versions[chosen[0]] = Version(versions[chosen[0]].value, False, versions[chosen[0]].fresh)
    return Register(context, versions)


@given(registers())
def test_what_is_encoded_is_decoded(register):
    payload = encode_register(register)
    assert decode_register(payload) == register
    assert encode_register(decode_register(payload)) == payload


def test_the_order_in_which_a_register_came_about_does_not_show():
    register = VECTORS["conflict"]
    other = Register(dict(reversed(register.context.items())), dict(reversed(register.versions.items())))
    assert encode_register(other) == encode_register(register)


@given(st.binary(max_size=60))
@example(b"")
@example(b"\x9f" * 2_000)
@example(b"\x83\x01\x80\x81\x84\x00\x01\x00\xf6")
def test_rubbish_is_refused_with_a_clear_error(payload):
    with pytest.raises((CorruptRecord, UnsupportedFormat), match="A register"):
        decode_register(payload)


@given(registers(), st.data())
def test_a_damaged_register_is_refused_or_is_another_one(register, data):
    payload = bytearray(encode_register(register))
    place = data.draw(st.integers(0, len(payload) - 1))
    payload[place] ^= data.draw(st.integers(1, 255))
    try:
        decoded = decode_register(bytes(payload))
    except (CorruptRecord, UnsupportedFormat):
        return
    assert encode_register(decoded) == bytes(payload)


def changed(at, value):
    item = cbor2.loads(encode_register(VECTORS["file"]))
    holder = item
    for place in at[:-1]:
        holder = holder[place]
    holder[at[-1]] = value
    return cbor2.dumps(item)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(cbor2.dumps([FORMAT]), id="too short"),
        pytest.param(changed([1], [A]), id="a writer without a time"),
        pytest.param(changed([1], [0, VT]), id="the writer of stable values"),
        pytest.param(changed([1], [A, 1 << 63]), id="a time of 64 bits"),
        pytest.param(changed([1], [A, VT, A, VT]), id="a writer twice"),
        pytest.param(changed([2, 0, 0], 2), id="a writer that is not there"),
        pytest.param(changed([2, 0, 1], VT + 1), id="before the beginning"),
        pytest.param(changed([2, 0, 2], 4), id="an unknown flag"),
        pytest.param(changed([2, 0, 2], 1), id="nothing counts"),
        pytest.param(changed([2, 0, 3], [9]), id="an unknown kind"),
        pytest.param(changed([2, 0, 3], [5, b"short"]), id="no hash"),
        pytest.param(changed([2, 0, 3], [4, bytes(MAXIMUM_DOCUMENT_BYTES + 1)]), id="a large document"),
        pytest.param(changed([2, 0, 3, 6 - 1], 7), id="a type that is no text"),
        pytest.param(changed([2, 0, 3, 2], -1), id="a negative size"),
        pytest.param(changed([2, 0, 3, 2], True), id="a size that is no number"),
        pytest.param(changed([2], []), id="no version"),
        pytest.param(encode_register(VECTORS["file"]) + b"\0", id="something behind it"),
        pytest.param(bytes(MAXIMUM_REGISTER_BYTES + 1), id="too long"),
    ],
)
def test_what_is_no_register_is_refused(payload):
    with pytest.raises(CorruptRecord, match="A register"):
        decode_register(payload)


def test_a_newer_format_is_named():
    with pytest.raises(UnsupportedFormat, match="format 2"):
        decode_register(changed([0], 2))
