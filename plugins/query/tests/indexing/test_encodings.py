"""Encodings of texts: what ``indexes.json`` says is told to parsers, and what they guess is in the status."""

from __future__ import annotations

from typing import Any

import pytest
from svc_query.api import Guessed, Parser
from svc_query.commands.statuses import status_lines
from svc_query.indexing import index_status
from svc_query.testing.indexed_database import Indexed, Source

from svc.errors import InvalidInput

WORD = {"name": "word", "type": "exact"}


class Here(Parser):
    """A text, in the encoding that is said; else it guesses."""

    name = "here"
    content_types = frozenset({"text/x-here"})
    in_process = True

    def parse(self, content: Any, source: Any) -> Any:
        """See ``Parser``."""
        document = {"word": content.read().decode(source.encoding or "cp1252")}
        return document if source.encoding else Guessed(document, "cp1252")


class There(Here):
    """The same in a child process."""

    name = "there"
    content_types = frozenset({"text/x-there"})
    in_process = False


@pytest.fixture
def source() -> Source:
    source = Source()
    source.parsers.update(here=Here(), there=There())
    source.use()
    return source


@pytest.mark.parametrize("kind", ["here", "there"])
def test_an_encoding_of_a_directory_is_told_and_a_guess_is_named(indexed: Indexed, kind: str) -> None:
    words = {f"/d/{name}.txt": "Мир".encode("cp1251") for name in ("a", "b", "c")}
    indexed.configure("/d", WORD)
    indexed.put(words, f"text/x-{kind}")
    found = indexed.read(lambda snapshot: index_status(snapshot, ("d",), None, 2), waits_for=[((), None)])
    assert found["guessed"] == [{"path": f"/d/{name}.txt", "encoding": "cp1252"} for name in "ab"]
    assert found["more_guessed"]
    assert found["failures"] == []
    rest = indexed.read(lambda snapshot: index_status(snapshot, ("d",), "/d/b.txt", 2))
    assert ([one["path"] for one in rest["guessed"]], rest["more_guessed"]) == (["/d/c.txt"], False)

    indexed.configure("/d", WORD, encoding="Windows-1251")
    indexed.finish()
    assert {values["word"][0] for path, values in indexed.contents().items() if path in words} == {"Мир"}
    found = indexed.read(index_status)
    assert found["guessed"] == []
    assert [one["encoding"] for one in found["directories"]] == [None, "cp1251"]


def test_guesses_go_with_their_files(indexed: Indexed) -> None:
    indexed.configure("/", WORD)
    indexed.put({"/a.txt": b"x", "/b.txt": b"y"}, "text/x-here")
    indexed.put({"/a.txt": None, "/b.txt": {"word": "z"}})
    assert indexed.read(index_status)["guessed"] == []


def test_the_shell_counts_guesses_by_encoding(indexed: Indexed) -> None:
    indexed.configure("/", WORD)
    indexed.put({f"/{name}.txt": b"x" for name in "ab"}, "text/x-here")
    lines = list(status_lines(indexed.read(index_status)))
    assert lines[-2:] == ["encodings of texts that were guessed:", "  cp1252  2 files  such as /a.txt"]


@pytest.mark.parametrize("encoding", ["nonsense", "zlib", "idna", "punycode", "", 7, "a\0b"])
def test_what_is_no_encoding_of_texts_is_refused(encoding: object) -> None:
    from svc_query.index_configuration import parse_configuration

    with pytest.raises(InvalidInput) as refused:
        parse_configuration({"encoding": encoding, "indexes": []}, {})
    assert refused.value.details["field"] == "encoding"
