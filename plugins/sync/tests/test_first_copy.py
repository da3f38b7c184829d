"""What the interruptions of a first copy cost."""

from __future__ import annotations

import random

import msgspec
import pytest
from msgspec.structs import replace
from svc_sync.exchange import first_copy
from svc_sync.exchange.contents import INLINE_BYTES, MOST_BYTES
from svc_sync.exchange.records import NODE, find_node

from svc.errors import Conflict

from .nodes import Cut, Nodes, agree  # noqa: TID252


@pytest.mark.parametrize("globs", [(), ("/d/**",)])
@pytest.mark.parametrize(
    ("sizes", "questions"), [([24 << 20], 7), ([700_000] * 36, 16), ([3 << 20, 9] * 8, 8)]
)
def test_an_interruption_costs_a_few_mebibytes_however_large_files_and_pages_are(
    nodes: Nodes, sizes: list[int], questions: int, globs: tuple[str, ...]
) -> None:
    a, b = nodes.new(), nodes.new()
    for number, size in enumerate(sizes):
        a.put(f"d/{number}", random.Random(number).randbytes(size))
    b.enter(a, *globs)
    received = interruptions = 0
    is_complete = False
    while not is_complete:
        b.cut_at(questions)
        link = b.link(a)
        try:
            is_complete = first_copy.continue_copy(b.database, link)
        except Cut:
            interruptions += 1
            assert interruptions < 30
        received += link.take_counts()[1]
    assert a.leaves() == b.leaves()
    assert interruptions
    assert received < 1.02 * sum(sizes) + interruptions * (MOST_BYTES + INLINE_BYTES)


def test_what_an_older_svc_has_begun_is_gone_on_with(nodes: Nodes) -> None:
    """It noted its own tree with the first page only, and never if that had failed once."""
    a, b = nodes.new(), nodes.new()
    with a.database.transaction() as changes:
        for number in range(2_500):
            changes.put(("d", f"{number:04}"), b"%d" % number)
    b.enter(a)
    b.cut_at(3)
    with pytest.raises(Cut):
        first_copy.continue_copy(b.database, b.link(a))
    node = find_node(b.database.system())
    assert node is not None
    assert node.copying is not None
    assert node.copying.after is not None
    with b.database.transaction() as changes:
        older = replace(node, copying=replace(node.copying, own=None))
        changes.put_system(NODE, msgspec.json.encode(older))
    b.cut_at(0)
    assert first_copy.continue_copy(b.database, b.link(a))
    agree(a, b)


def test_a_node_says_nothing_before_it_has_its_first_copy(nodes: Nodes) -> None:
    """A hello tells the member that the joiner has its copy: it would keep the version no more."""
    a = nodes.new()
    joiner = nodes.new()
    for number in range(20):
        a.put(f"{number}", b"of a %d" % number)
    joiner.enter(a)
    with pytest.raises(Conflict, match="first copy"):
        joiner.pull(a)
    assert first_copy.continue_copy(joiner.database, joiner.link(a))
    nodes.heal()
    agree(a, joiner)
    assert joiner.read("19") == b"of a 19"
