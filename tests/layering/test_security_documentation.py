"""The comparison with OWASP ASVS 5.0.0: each requirement of levels 1 and 2 is there, and each named test."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = DOCS / "security" / "asvs.md"
SECURITY = DOCS / "security.md"
TESTED = DOCS / "security" / "tested.md"

COUNTS = """
1.1=2 1.2=9 1.3=11 1.4=3 1.5=2
2.1=3 2.2=3 2.3=4 2.4=1
3.2=2 3.3=4 3.4=6 3.5=5 3.7=2
4.1=3 4.2=1 4.3=2 4.4=4
5.1=1 5.2=3 5.3=2 5.4=3
6.1=3 6.2=12 6.3=4 6.4=4 6.5=5 6.6=3 6.8=4
7.1=3 7.2=4 7.3=2 7.4=5 7.5=2 7.6=2
8.1=2 8.2=3 8.3=1 8.4=1
9.1=3 9.2=4
10.1=2 10.2=2 10.3=4 10.4=11 10.5=5 10.6=2 10.7=3
11.1=2 11.2=3 11.3=3 11.4=4 11.5=1 11.6=1
12.1=3 12.2=2 12.3=4
13.1=1 13.2=5 13.3=2 13.4=5
14.1=2 14.2=4 14.3=3
15.1=3 15.2=3 15.3=7
16.1=1 16.2=5 16.3=4 16.4=3 16.5=3
17.1=1 17.2=4 17.3=2
"""
"""The last requirement of each section at level 1 or 2; those before it are of these levels too."""

NUMBERS = [
    f"{section}.{number}"
    for section, _, last in (word.partition("=") for word in COUNTS.split())
    for number in range(1, int(last) + 1)
]
STATUSES = {"held", "not applicable", "open"}
MOST_WORDS = 10

ROW = re.compile(r"\| (\d+\.\d+\.\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|")
TEST = re.compile(r"`([\w./-]+\.py)::((?:Test\w+::)?test_\w+)`")
SECTION = re.compile(r"\]\(([\w./-]+\.md)#([\w-]+)\)")


class Requirement(NamedTuple):
    number: str
    words: str
    status: str
    reason: str


def requirements() -> list[Requirement]:
    lines = PAGE.read_text().splitlines()
    return [
        Requirement(*(part.strip() for part in found.groups()))
        for found in map(ROW.fullmatch, lines)
        if found
    ]


@functools.cache
def names_of_tests(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^\s*(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE))


@functools.cache
def headings_of(path: Path) -> frozenset[str]:
    """The names by which links find the sections of a page, as GitHub and MyST make them."""
    texts = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts)


def missing_tests(page: Path) -> Iterator[str]:
    for path, name in TEST.findall(page.read_text()):
        file = ROOT / path
        if not file.is_file() or name.rpartition("::")[2] not in names_of_tests(file):
            yield f"{path}::{name}"


def test_the_list_of_numbers_is_that_of_the_standard() -> None:
    assert len(NUMBERS) == 253
    assert len(set(NUMBERS)) == 253


def test_every_requirement_of_levels_1_and_2_is_there_once() -> None:
    found = Counter(one.number for one in requirements())
    assert [number for number in NUMBERS if found[number] != 1] == []
    assert set(found) - set(NUMBERS) == set()


def test_every_line_of_the_tables_is_a_requirement() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    others = [line for line in lines if not ROW.fullmatch(line)]
    assert {line for line in others if not line.startswith(("| No.", "| Chapter", "| "))} == set()
    assert all(one.status in STATUSES for one in requirements())


def test_each_is_said_in_a_few_words() -> None:
    assert [one.number for one in requirements() if len(one.words.split()) > MOST_WORDS] == []


def test_what_is_held_has_a_test_or_where_it_asks_for_documentation_a_section() -> None:
    bare = [
        one.number
        for one in requirements()
        if one.status == "held" and not TEST.search(one.reason) and not SECTION.search(one.reason)
    ]
    assert bare == []


def test_what_is_not_held_says_why() -> None:
    assert [
        one.number for one in requirements() if len(one.reason.split()) < 3 and one.status != "held"
    ] == []


def test_the_numbers_at_the_top_are_those_of_the_table() -> None:
    counted = Counter(one.status for one in requirements())
    text = PAGE.read_text()
    for status in STATUSES:
        assert re.search(rf"\*\*{counted[status]}\*\* (?:are )?{status}\b", text), (status, counted[status])


@pytest.mark.parametrize("page", [PAGE, SECURITY, TESTED], ids=lambda page: page.name)
def test_every_test_that_is_named_exists(page: Path) -> None:
    assert list(missing_tests(page)) == []


@pytest.mark.parametrize("page", [PAGE, SECURITY, TESTED], ids=lambda page: page.name)
def test_every_section_that_is_named_exists(page: Path) -> None:
    missing = [
        f"{name}#{heading}"
        for name, heading in SECTION.findall(page.read_text())
        if heading not in headings_of((page.parent / name).resolve())
    ]
    assert missing == []


def test_the_guarantees_are_numbered_without_a_gap() -> None:
    section = SECURITY.read_text().partition("## Guarantees")[2].partition("\n## ")[0]
    numbers = [int(number) for number in re.findall(r"^(\d+)\. \*\*", section, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 12
