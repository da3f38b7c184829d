"""The page about parsers says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made_files import FILES
from svc_parsers.parsers import PARSERS
from svc_parsers.shapes import MAXIMUM_CELLS, MAXIMUM_TEXT
from svc_query.parsing import MAXIMUM_DEPTH, MAXIMUM_DOCUMENT_VALUES

PAGE = (Path(__file__).parents[3] / "docs" / "plugins" / "parsers.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", PAGE.partition("Not read:")[0], re.MULTILINE))
NAMED_IN_WORDS = {"spreadsheet", "word", "presentation", "opendocument"}


def test_every_parser_has_its_row() -> None:
    assert [name for name in ROWS if name != "parser"] == [parser.name for parser in PARSERS]


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_the_row_names_what_it_reads(parser) -> None:
    types, _, endings = ROWS[parser.name].rpartition(" | ")
    assert set(re.findall(r"`([^`]+)`", endings)) == parser.extensions
    if parser.name not in NAMED_IN_WORDS:
        assert set(re.findall(r"`([^`]+)`", types)) == parser.content_types


@pytest.mark.parametrize("name", FILES)
def test_each_member_is_described(name: str, read) -> None:
    document = read(name, FILES[name]())
    if isinstance(document, dict) and not name.endswith((".json", ".yaml", ".toml")):
        assert [member for member in document if f"`{member}`" not in PAGE] == []


def test_the_limits_are_those_of_the_code() -> None:
    for limit in (f"{MAXIMUM_TEXT:,} characters", f"{MAXIMUM_CELLS:,} cells"):
        assert limit in PAGE
    assert f"at most {MAXIMUM_DEPTH} levels and {MAXIMUM_DOCUMENT_VALUES:,} values" in PAGE
