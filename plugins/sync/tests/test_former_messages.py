"""What nodes of former versions say is understood, and they understand what this one says.

``golden/messages-1.json`` holds each message as the version encoded it that first had it. What came to one
later has a default, and nothing that was there before is missing or has another type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cbor2
import pytest
from msgspec import Struct
from svc_sync.cluster import Cluster, Head, Member
from svc_sync.encoding import decode_register, encode_register
from svc_sync.exchange import messages
from svc_sync.exchange.messages import decode_message, encode_message
from svc_sync.registers import STABLE, Dot, Register, Version
from svc_sync.values import Directory, Document, Reference

from svc.plugin import Entry, EntryKind, hash_content

GOLDEN = Path(__file__).parent / "golden" / "messages-1.json"

ONE, TWO, VT = 4_180_921_753_312_240_011, 7_043_318_120_993_215_008, 1_795_000_000_000 << 16
FILE = Entry(EntryKind.FILE, hash_content(b"text"), 4, 1_000, 2_000, "text/plain")
LINK = Entry(EntryKind.SYMLINK, hash_content(b"/x"), 2, 1_000, 2_000, target="/x")


def registers() -> dict[str, Register]:
    """A register with each kind of value, with what has lost, and with a value that all know."""
    context = {ONE: VT + 9, TWO: VT + 8}
    return {
        "file": Register(context, {Dot(VT + 9, ONE): Version(FILE)}),
        "link": Register(context, {Dot(VT + 9, ONE): Version(LINK)}),
        "directory": Register(context, {Dot(VT + 8, TWO): Version(Directory(1_000))}),
        "deletion": Register(context, {Dot(VT + 8, TWO): Version(None)}),
        "document": Register(context, {Dot(VT + 8, TWO): Version(Document(b"{}"))}),
        "reference": Register(context, {Dot(VT + 8, TWO): Version(Reference(hash_content(b"r")))}),
        "conflict": Register(
            context,
            {Dot(VT + 9, ONE): Version(FILE, fresh=True), Dot(VT + 8, TWO): Version(None, parked=True)},
        ),
        "stable": Register(context, {STABLE: Version(LINK), Dot(VT + 8, TWO): Version(FILE)}),
    }


def examples() -> dict[str, Struct]:
    """A message of each kind."""
    me, other = Member(ONE, 11), Member(TWO, 12, ("/a/**",), (5, 6))
    known = {ONE: VT, TWO: VT + 1}
    head = Head(VT, 17, hash_content(b"commit"))
    cluster = Cluster({ONE: me, TWO: other}, frozenset({7}), {ONE: known, TWO: {ONE: VT}}, {ONE: head})
    page = [("/a", encode_register(registers()["file"])), ("/b", encode_register(registers()["deletion"]))]
    clock = VT >> 16
    return {
        "hello": messages.HelloMessage(
            protocol=1, cluster_id="c" * 32, member=me, known=known, cluster=cluster, t1=clock,
            address="https://one.example.org", label="one", is_marked=False,
        ),
        "hello answer": messages.HelloAnswer(
            protocol=1, cluster_id="c" * 32, member=other, known=known, cluster=cluster, verdict="accept",
            head=hash_content(b"head"), t2=clock, t3=clock + 1, your_address="https://one.example.org",
        ),
        "page": messages.PageMessage(cluster_id="c" * 32, asker=ONE, known=known, after="/a", limit=10),
        "page answer": messages.PageAnswer(
            member=other, known=known, cluster=cluster, registers=page, last=False, contents=[b"text"]
        ),
        "tree": messages.TreeMessage(
            cluster_id="c" * 32, asker=ONE, root=hash_content(b"r"), after="/a", of_system=True,
            bases=[hash_content(b"b")],
        ),
        "tree answer": messages.TreeAnswer(
            leaves=page, contents=[b"text"], after="/b", base=hash_content(b"b")
        ),
        "objects": messages.ObjectsMessage(
            cluster_id="c" * 32, asker=ONE, path="/a", content=hash_content(b"text"), first=3,
            hashes=[hash_content(b"chunk")], root=hash_content(b"r"),
        ),
        "objects answer": messages.ObjectsAnswer(
            hashes=[hash_content(b"chunk")], has_more=True, chunks=[b"chunk"]
        ),
        "admitted": messages.AdmittedState(member=me, known=known, cluster=cluster, vt=VT),
        "pull": messages.PullMessage(cluster_id="c" * 32, asker=ONE, wait_ms=5),
        "pull answer": messages.PullAnswer(pulled=3, error="why"),
    }  # fmt: skip


def golden(kind: str) -> dict[str, bytes]:
    """What was recorded, by its name."""
    found = json.loads(GOLDEN.read_text())[kind]
    return {name: bytes.fromhex(payload) for name, payload in found.items()}


@pytest.mark.parametrize("name", sorted(examples()))
def test_a_message_of_a_former_version_is_understood(name: str) -> None:
    expected = examples()[name]
    assert decode_message(golden("messages")[name], type(expected)) == expected


@pytest.mark.parametrize("name", sorted(examples()))
def test_a_former_version_understands_this_one(name: str) -> None:
    """It leaves out members that it does not know, and needs all the others, with the types that they had."""
    said = cbor2.loads(encode_message(examples()[name]))
    assert list(differences(cbor2.loads(golden("messages")[name]), said)) == []


@pytest.mark.parametrize("name", sorted(registers()))
def test_a_register_has_the_bytes_that_it_had(name: str) -> None:
    payload = golden("registers")[name]
    assert decode_register(payload) == registers()[name]
    assert encode_register(registers()[name]) == payload


def differences(former: Any, said: Any, place: str = "") -> Iterator[str]:
    """Yields where something of a former message is not as it was."""
    if isinstance(former, dict) and isinstance(said, dict):
        for key, value in former.items():
            if key in said:
                yield from differences(value, said[key], f"{place}/{key}")
            else:
                yield f"{place}/{key} is missing"
    elif former != said:
        yield f"{place}: {former!r}, now {said!r}"
