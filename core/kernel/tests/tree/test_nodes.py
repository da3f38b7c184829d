from __future__ import annotations

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.errors import CorruptRecord
from svc.tree import (
    NO_TOTALS,
    Entry,
    EntryKind,
    Inner,
    Leaf,
    Totals,
    build,
    check_node,
    decode_node,
    empty_payload,
)
from svc.tree.codec import encode_columns, leaf_columns
from svc_testing.memory_nodes import MemoryNodeStore

hashes = st.binary(min_size=32, max_size=32)
figures = st.integers(0, 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12)
names = texts.filter(lambda text: text not in {".", ".."})
files = st.builds(
    Entry, st.just(EntryKind.FILE), hashes, figures, figures, figures,
    content_type=st.one_of(st.none(), st.sampled_from(["text/plain", "image/png"]), texts),
    record=st.one_of(st.none(), hashes),
)  # fmt: skip
links = st.builds(Entry, st.just(EntryKind.SYMLINK), hashes, figures, figures, figures, target=texts)


@st.composite
def directories(draw):
    node_hash, counts = draw(hashes), draw(st.tuples(figures, figures, figures))
    size, created_ms, updated_ms = draw(figures), draw(figures), draw(figures)
    if not any(counts):
        return Entry(EntryKind.DIRECTORY, node_hash, 0, created_ms, created_ms, totals=NO_TOTALS)
    below = Totals(*counts, size, created_ms, updated_ms)
    return Entry(EntryKind.DIRECTORY, node_hash, size, created_ms, updated_ms, totals=below)


contents = st.dictionaries(names, st.one_of(files, links, directories()), max_size=20)


@given(contents)
def test_a_leaf_gives_back_every_member_of_every_entry_and_has_one_encoding(content):
    items = sorted(content.items())
    payload = encode_columns(0, leaf_columns(items))
    node = check_node(payload)
    assert isinstance(node, Leaf)
    assert node.items() == items
    assert [node.entry(index) for index in range(len(items))] == [entry for _, entry in items]
    assert encode_columns(0, node.columns) == payload


def sound_payloads():
    store = MemoryNodeStore()
    link = Entry(EntryKind.SYMLINK, bytes(32), 2, 5, 5, target="/a")
    record = Entry(EntryKind.FILE, b"h" * 32, 70_000, 3, 4, "image/png", record=b"r" * 32)
    directory = Entry(EntryKind.DIRECTORY, b"d" * 32, 9, 1, 2, totals=Totals(3, 0, 0, 9, 1, 2))
    bare = Entry(EntryKind.DIRECTORY, b"e" * 32, 0, 6, 6, totals=NO_TOTALS)
    mixed = [("a", link), ("b", record), ("d", directory), ("e", bare)]
    root = build(
        store, [(f"{n:04d}", Entry(EntryKind.FILE, bytes(32), n, 1, 2, "text/plain")) for n in range(300)]
    )
    return [store.payloads[root], empty_payload(), encode_columns(0, leaf_columns(mixed))]


SOUND = sound_payloads()


def is_refused_or_sound(payload):
    """Decodes; what is accepted must be usable through and through."""
    try:
        node = decode_node(payload)
    except CorruptRecord:
        return True
    node.summary()
    if isinstance(node, Inner):
        return len(node.children()) == len(node.counts()) == len(node.names)
    return len(node.items()) == len(node.names) and len(node.contents()) <= len(node.names)


@settings(max_examples=300)
@given(st.sampled_from(SOUND), st.data())
def test_a_mutated_payload_is_refused_as_corrupt_or_is_another_sound_node(payload, data):
    changed = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(changed) - 1))
        kind = data.draw(st.sampled_from(["set", "delete", "insert", "copy"]))
        if kind == "set":
            changed[position] = data.draw(st.integers(0, 255))
        elif kind == "delete" and len(changed) > 1:
            del changed[position]
        elif kind == "insert":
            changed.insert(position, data.draw(st.integers(0, 255)))
        else:
            changed[position:position] = changed[position : position + 9]
    assert is_refused_or_sound(bytes(changed))


@pytest.mark.parametrize("payload", SOUND)
def test_a_payload_cut_short_anywhere_is_refused(payload):
    for length in range(len(payload)):
        with pytest.raises(CorruptRecord):
            decode_node(payload[:length])


@given(st.binary(max_size=60))
def test_any_bytes_at_all_are_refused_or_a_sound_node(payload):
    assert is_refused_or_sound(payload)


values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.binary(max_size=40), st.text(max_size=5)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.integers(0, 5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(SOUND), st.integers(0, 10), values)
def test_an_item_of_another_type_is_refused_or_a_sound_node(payload, place, value):
    document = cbor2.loads(payload)
    document[place % len(document)] = value
    assert is_refused_or_sound(cbor2.dumps(document))


def leaf(**changes):
    items = {
        "format": 1,
        "level": 0,
        "names": ["a", "b"],
        "kinds": b"\x02\x08",
        "hashes": bytes(64),
        "numbers": bytes(48),
        "types": ["text/plain"],
        "index": b"\x01\x00",
        "records": {0: bytes(32)},
        "targets": {1: "/a"},
        "totals": {},
    }
    return cbor2.dumps([*(items | changes).values()])


EMPTY_DIRECTORY = {"kinds": b"\x02\x03", "targets": {}, "totals": {1: [0, 0, 0]}}


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2}, {"format": True}, {"level": -1}, {"level": 64}, {"level": 1}, {"level": 0.0},
        {"names": ["b", "a"]}, {"names": ["a", "a"]}, {"names": ["a"]}, {"names": ["a", b"b"]},
        {"names": ["", "b"]}, {"names": ["..", "b"]}, {"names": ["a", "b/c"]}, {"names": ["a", "b\0"]},
        {"names": {"a": 1, "b": 2}},
        {"kinds": b"\x02"}, {"kinds": b"\x02\x07"}, {"kinds": b"\x02\x03"}, {"kinds": "ab"},
        {"hashes": bytes(63)}, {"numbers": bytes(47)}, {"numbers": bytes(47) + b"\x80"}, {"index": b"\x01"},
        {"index": b"\x02\x00"}, {"index": b"\x00\x00"}, {"index": b"\x01\x01"}, {"types": ["a", "a"]},
        {"types": ["b", "a"], "index": b"\x01\x02"}, {"types": [5]}, {"types": "text/plain"},
        {"records": {1: bytes(32)}}, {"records": {0: bytes(31)}}, {"records": {2: bytes(32)}},
        {"records": []}, {"records": {"0": bytes(32)}}, {"targets": {}}, {"targets": {1: 5}},
        {"targets": {0: "/a", 1: "/a"}},
        {"totals": {0: [1, 0, 0]}},
        {"kinds": b"\x02\x03", "targets": {}, "totals": {1: [1, 0]}},
        {"kinds": b"\x02\x03", "targets": {}, "totals": {1: [1, 0, -1]}},
        {"kinds": b"\x02\x03", "targets": {}, "totals": {1: [1, 0, 2**63]}},
        {**EMPTY_DIRECTORY, "numbers": bytes(24) + b"\1" + bytes(23)},
        {**EMPTY_DIRECTORY, "numbers": bytes(32) + b"\1" + bytes(15)},
    ],
)  # fmt: skip
def test_a_leaf_that_lies_is_refused(changes):
    decode_node(leaf())
    decode_node(leaf(**EMPTY_DIRECTORY))
    with pytest.raises(CorruptRecord):
        decode_node(leaf(**changes))


@pytest.mark.parametrize(
    "document",
    [
        [1, 1, [], b"", b""],
        [1, 1, ["a"], bytes(31), bytes(56)],
        [1, 1, ["a"], bytes(32), bytes(56)],
        [1, 1, ["a"], bytes(32), b"\1" + bytes(54) + b"\x80"],
        [1, 1, ["a"], bytes(32), b"\1" + bytes(55), 0],
        [1, 1, [f"{n:03d}" for n in range(65)], bytes(65 * 32), b"\1" * (65 * 56)],
        [1, 2**70, ["a"], bytes(32), b"\1" + bytes(55)],
        [1],
        [],
        {},
        "text",
    ],
)
def test_an_inner_node_that_lies_is_refused(document):
    with pytest.raises(CorruptRecord):
        decode_node(cbor2.dumps(document))


@pytest.mark.parametrize("tag", [0, 2, 4, 5, 28, 29, 35, 37, 258, 6, 999])
def test_tagged_values_are_refused_before_they_become_objects(tag):
    with pytest.raises(CorruptRecord):
        decode_node(leaf(targets=cbor2.CBORTag(tag, {1: "/a"})))
    huge = cbor2.CBORTag(tag, [2**40, 1])
    with pytest.raises(CorruptRecord):
        decode_node(leaf(level=huge))


@pytest.mark.parametrize(
    "payload", [b"\x9b" + b"\xff" * 8, b"\x8b\x01\x00\x9b" + b"\x7f" * 8, b"\x81" * 5000, bytes(3 << 20)]
)
def test_lengths_and_depths_that_no_node_has_cost_nothing(payload):
    with pytest.raises(CorruptRecord):
        decode_node(payload)


def test_a_second_spelling_of_the_same_node_is_not_canonical():
    payload = leaf()
    for other in (payload + b"\0", payload.replace(b"\x8b\x01", b"\x8b\x18\x01", 1)):
        assert decode_node(other).names == ["a", "b"]
        with pytest.raises(CorruptRecord):
            check_node(other)
    assert check_node(payload).names == ["a", "b"]
