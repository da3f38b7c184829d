"""Files that mean harm or are broken are told in words or read, and change nothing for the others.

``SVC_TEST_HOSTILE_SCALE=8`` reads all of them, more than a thousand; a short run reads every eighth.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hostile_files import HOSTILE, MUTATIONS, hostile_files
from made_files import FILES
from svc_parsers.parsers import PARSERS
from svc_query.api import ParserInput
from svc_query.configuration import QueryConfiguration
from svc_query.parsing import ParseResult, ParserPool, choose_parser

from long_runs import Extent

BY_NAME = {parser.name: parser() for parser in PARSERS}
EXTENT = Extent("HOSTILE")
MOST_MEMORY = 160 << 20
"""What reading any of them may add to the process that has the pool."""

IN_WORDS = re.compile(
    r"The parser [a-z-]+ (can't read it: .+|needs more memory for it than 512 MiB|took longer than 4 seconds"
    r"|crashed \(SIG[A-Z]+\)|used more time than it may|was killed, perhaps for want of memory)\."
)
REFUSED_AT_ONCE = {
    "laughs.yaml": "with its aliases it has more than 500,000 values",
    "merges.yaml": "with its aliases it has more than 500,000 values",
    "itself.yaml": "an alias stands for a list or mapping that contains it",
    "deep.yaml": "it nests too deeply",
    "deep-dashes.yaml": "it nests too deeply",
    "python.yaml": "could not determine a constructor",
    "python-2.yaml": "could not determine a constructor",
    "laughs.xml": "it declares entities",
    "quadratic.xml": "it declares entities",
    "external.xml": "it declares entities",
    "laughs.svg": "it declares entities",
    "deep.xml": "it nests more than 90 levels deep",
    "deep.json": "it nests too deeply",
    "columns.csv": "the table has more than 200,000 cells",
    "bomb.docx": "its archive would unpack to more than 256 MiB",
    "members.docx": "its archive has more than 10,000 members",
    "laughs.docx": "Maximum entity amplification factor exceeded",
    "laughs.odt": "Maximum entity amplification factor exceeded",
    "text.png": "Decompressed data too large",
    "loop.tiff": "it is no image of a known format",
    "nested.eml": "it nests too deeply",
}
DESCRIBED = {"huge.png": (0x7FFFFFFF, 0x7FFFFFFF), "pixels.png": (100_000, 100_000)}
"""Pictures that nobody should decode: their headers are read, and nothing else."""


def parse(pool: ParserPool, name: str, content: bytes) -> ParseResult:
    parser = choose_parser(BY_NAME, None, name, None)
    assert parser is not None, name
    return pool.parse(parser, content, ParserInput(name, None, len(content)))


def memory(row: str) -> int:
    found = re.search(rf"^{row}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) << 10


def test_there_are_more_than_a_thousand() -> None:
    assert len(HOSTILE) + len(FILES) * MUTATIONS > 1_000


@pytest.mark.timeout(900)
def test_each_is_read_or_refused_in_words() -> None:
    every = max(1, round(8 / EXTENT.scale))
    pool = ParserPool(QueryConfiguration(parse_seconds=4.0))
    read = refused = 0
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    try:
        for name, content in hostile_files(every):
            result = parse(pool, name, content)
            if result.failure is None:
                read += 1
            else:
                refused += 1
                assert IN_WORDS.fullmatch(result.failure), (name, result.failure)
                assert len(result.failure) <= 300 and result.failure.isprintable()
                assert not result.transient
            assert len(pool.children) <= 2
        good = FILES["book.json"]()
        assert parse(pool, "book.json", good).failure is None
        children = pool.children
    finally:
        pool.close()
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []
    # Files that are all read, or all refused, would be tests of nothing.
    assert read > (read + refused) // 5
    assert refused > (read + refused) // 5
    assert memory("VmHWM") - before < MOST_MEMORY


@pytest.mark.parametrize("name", REFUSED_AT_ONCE)
def test_the_known_attacks_are_refused_for_what_they_are(name: str, refuse) -> None:
    assert REFUSED_AT_ONCE[name] in refuse(name, HOSTILE[name]())


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_picture_is_never_decoded(name: str, pool: ParserPool) -> None:
    result = parse(pool, name, HOSTILE[name]())
    assert result.failure is None
    assert (result.document["width"], result.document["height"]) == DESCRIBED[name]


@pytest.mark.parametrize("name", ["external.docx", "external.odt", "external.xml"])
def test_nothing_elsewhere_is_read(name: str, pool: ParserPool) -> None:
    result = parse(pool, name, HOSTILE[name]())
    assert "root:" not in repr(result)
