"""The documentation that packages ship, of four formats, is found by its words and by pieces of it."""

from __future__ import annotations

import random
import re
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from svc_query.indexing import finish_work

from long_runs import Extent
from realdata.served_queries import Served, leaf, served, words_of

EXTENT = Extent("REALDATA")
CONFIGURATION = {
    "glob": "**/*",
    "indexes": [
        {"name": "text", "type": ["trigram", "fulltext"], "value_type": "text"},
        {"name": "title", "type": ["exact", "trigram"]},
        {"name": "heading", "type": "exact", "source": ["headings", "", "text"]},
    ],
}
FORMATS = {
    ".md": "text/markdown",
    ".html": "text/html",
    ".rst": "text/x-rst",
    ".txt": "text/plain",
}
PLACES = (Path(sysconfig.get_paths()["purelib"]), Path("/usr/share/doc"))
MOST_BYTES = 400_000
WORD = re.compile("[a-z]{6,14}")


class VisibleText(HTMLParser):
    """What a reader sees of a page: by the standard library, not by the parser under test."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden = 0
        self.body = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.body |= tag == "body"
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if self.body and not self._hidden:
            self.pieces.append(data)


def seen_words(name: str, text: str) -> set[str]:
    """Words that a reader sees in a file for sure, in lower case."""
    if name.endswith(".md"):
        # Front matter is a field of its own.
        text = re.sub(r"\A---\n.*?^---$", "", text, flags=re.DOTALL | re.MULTILINE)
    if not name.endswith(".html"):
        # Words that stand alone: no part of an address, of a reference or of markup.
        return {word for word in text.split() if WORD.fullmatch(word)}
    page = VisibleText()
    page.feed(text)
    return {word for piece in page.pieces for word in piece.split() if WORD.fullmatch(word)}


@pytest.fixture(scope="module")
def documentation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for place in PLACES:
        for file in sorted(place.rglob("*")):
            if file.suffix in FORMATS and file.is_file() and 0 < file.stat().st_size < MOST_BYTES:
                found[file.suffix].append(file)
    rng = random.Random(1)
    texts: dict[str, str] = {}
    with served(tmp_path_factory.mktemp("docs") / "x.svcdb", CONFIGURATION) as (service, database):
        with database.transaction() as transaction:
            for ending, files in sorted(found.items()):
                for number, file in enumerate(rng.sample(files, min(len(files), EXTENT.scaled(60)))):
                    content = file.read_bytes()
                    try:
                        text = content.decode()
                    except UnicodeDecodeError:
                        continue
                    path = (ending[1:], f"{number}-{file.name}")
                    texts["/" + "/".join(path)] = text
                    transaction.put(path, content, content_type=FORMATS[ending])
        assert finish_work(database)
        yield service, texts


@pytest.mark.timeout(300)
def test_every_file_with_words_is_read(documentation: tuple[Served, dict[str, str]]) -> None:
    service, texts = documentation
    for ending in (".md", ".rst", ".txt"):
        assert sum(path.endswith(ending) for path in texts) >= 10
    read = service.paths("/", leaf("text", "exists", True))
    assert {path for path, text in texts.items() if seen_words(path, text)} <= read <= set(texts)


@pytest.mark.timeout(300)
def test_documentation_is_found_by_its_words(documentation: tuple[Served, dict[str, str]]) -> None:
    service, texts = documentation
    seen = {path: seen_words(path, text) for path, text in texts.items()}
    every = {path: set(words_of(text)) for path, text in texts.items()}
    rng = random.Random(2)
    for _ in range(EXTENT.scaled(60)):
        path = rng.choice([path for path, words in seen.items() if words])
        word = rng.choice(sorted(seen[path]))
        sure = {path for path, words in seen.items() if word in words}
        possible = {path for path, words in every.items() if word in words}
        found = service.paths("/", leaf("text", "search", word))
        assert sure <= found, (word, sorted(sure - found)[:5])
        # Markup stands between the letters of a word here and there, and an entity is a letter.
        assert all(path.endswith(".html") for path in found - possible), (word, sorted(found - possible)[:5])


@pytest.mark.timeout(300)
def test_documentation_is_found_by_pieces_of_it(documentation: tuple[Served, dict[str, str]]) -> None:
    """Plain text and reStructuredText are indexed as they are, so what is found is known exactly."""
    service, texts = documentation
    plain = {path: text.casefold() for path, text in texts.items() if path.startswith(("/txt/", "/rst/"))}
    rng = random.Random(3)
    for _ in range(EXTENT.scaled(60)):
        text = rng.choice(list(plain.values()))
        start = rng.randrange(max(1, len(text) - 12))
        piece = text[start : start + rng.randint(4, 12)]
        if not piece.strip() or not piece.isascii():
            continue
        expected = {path for path, one in plain.items() if piece in one}
        found = {path for path in service.paths("/", leaf("text", "contains", piece)) if path in plain}
        assert found == expected, (piece, sorted(found ^ expected)[:5])


@pytest.mark.timeout(300)
def test_documentation_is_found_by_its_headings(documentation: tuple[Served, dict[str, str]]) -> None:
    service, texts = documentation
    headings: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        if path.startswith("/md/") and "```" not in text and "~~~" not in text:
            for found in re.findall("^#{1,6} ([A-Za-z0-9 ]+)$", text, re.MULTILINE):
                headings[" ".join(found.split())].add(path)
    assert headings
    rng = random.Random(4)
    for heading in rng.sample(sorted(headings), min(len(headings), EXTENT.scaled(40))):
        assert headings[heading] <= service.paths("/", leaf("heading", "eq", heading)), heading
