"""Full text beside SQLite FTS5 and tantivy alone: building, asking, small commits, which documents are best.

    python tests/bench/fulltext.py [--documents 100000] [--rounds 5]

Both get the same documents and the same words: FTS5 with ``unicode61 remove_diacritics 2``, which folds case
and accents as the index type does without a language. The corpus of the ranking is the docstrings of the
modules that are installed beside svc. Prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import tantivy
from pyroaring import BitMap
from svc_index_fulltext.index_type import FulltextIndexType
from svc_index_fulltext.operator import SearchOperator
from svc_index_fulltext.writing import HEAP_BYTES
from svc_query.api import IndexDocument, Leaf

KIND = FulltextIndexType()
OPTIONS = KIND.normalize({})
FLUSH = 4_096
REBUILD_FLUSH = 65_536

QUERIES = {
    "common word": "the",
    "rare word": "w4711",
    "AND of two": "common w12",
    "OR of two": "common OR w12",
    "phrase": '"common w3"',
    "beginning": "w47*",
    "word without another": "common -w1",
}


def sentences(count: int) -> list[str]:
    """Documents of some 40 words by Zipf's law."""
    chosen = random.Random(7)
    words = ["the", "common"] + [f"w{n}" for n in range(50_000)]
    weights = [1 / (n + 1) for n in range(len(words))]
    total, cumulative = 0.0, []
    for weight in weights:
        total += weight
        cumulative.append(total)
    return [
        " ".join(chosen.choices(words, cum_weights=cumulative, k=chosen.randrange(20, 60)))
        for _ in range(count)
    ]


class Ours:
    """The index type, used as a driver does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.state: bytes | None = None
        self.reader = None

    def add(self, first: int, texts: list[str]) -> None:
        writer = KIND.open_writer(self.directory, OPTIONS, self.state)
        writer.add(
            IndexDocument(first + n, ("d", f"{(first + n) % 100}", f"{first + n}"), (text,))
            for n, text in enumerate(texts)
        )
        self.state = writer.flush(BitMap())
        writer.close()

    def open(self) -> None:
        self.reader = KIND.open_reader(self.directory, OPTIONS, self.state)

    def best(self, asked: str, limit: int = 10, below=None) -> list[int]:
        found = compiled(asked).best({"fulltext": self.reader}, limit, below=below)
        return [number for number, _ in found]

    def all(self, asked: str) -> int:
        return len(compiled(asked).candidates({"fulltext": self.reader}))

    def size(self) -> int:
        return self.reader.size


class Bare:
    """The library alone: text and number, its own tokenizer for words in lower case, one thread as here."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", stored=False)
        builder.add_integer_field("id", stored=False, indexed=True, fast=True)
        self.writer = tantivy.Index(builder.build(), path=str(directory)).writer(HEAP_BYTES, 1)

    def add(self, first: int, texts: list[str]) -> None:
        for number, text in enumerate(texts, first):
            document = tantivy.Document()
            document.add_integer("id", number)
            document.add_text("text", text)
            self.writer.add_document(document)
        self.writer.commit()


class Sqlite:
    """FTS5, in WAL mode, without a copy of the texts."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.file = directory / "fts.db"
        self.connection = sqlite3.connect(self.file)
        self.connection.execute("pragma journal_mode=wal")
        self.connection.execute("pragma synchronous=full")
        self.connection.execute("pragma cache_size=-65536")
        self.connection.execute(
            "create virtual table t using fts5(text, content='', tokenize='unicode61 remove_diacritics 2')"
        )

    def add(self, first: int, texts: list[str]) -> None:
        with self.connection:
            self.connection.executemany(
                "insert into t(rowid, text) values(?, ?)", ((first + n, text) for n, text in enumerate(texts))
            )

    def open(self) -> None:
        sqlite3.connect(self.file).execute("select count(*) from t where t match 'w9'").fetchone()

    def best(self, asked: str, limit: int = 10) -> list[int]:
        rows = self.connection.execute(
            "select rowid from t where t match ? order by rank limit ?", (as_fts5(asked), limit)
        )
        return [row[0] for row in rows]

    def all(self, asked: str) -> int:
        return len(
            BitMap(
                [
                    row[0]
                    for row in self.connection.execute(
                        "select rowid from t where t match ?", (as_fts5(asked),)
                    )
                ]
            )
        )

    def size(self) -> int:
        self.connection.execute("pragma wal_checkpoint(truncate)")
        return self.file.stat().st_size


def compiled(asked: str):
    return SearchOperator().compile(Leaf(field="text", op="search", value=asked))


def as_fts5(asked: str) -> str:
    return asked.replace(" -", " NOT ")


def timed(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def median(task: Callable[[], object], rounds: int) -> float:
    task()
    return statistics.median(timed(task) for _ in range(rounds))


def measure(directory: Path, count: int, rounds: int) -> None:
    texts = sentences(count)
    size = sum(map(len, texts))
    both = {"svc": Ours(directory / "ours-rebuilt"), "FTS5": Sqlite(directory / "fts-rebuilt")}
    rows: list[tuple[str, dict[str, float], str]] = []
    for place, flush in enumerate((REBUILD_FLUSH, FLUSH)):
        if place:
            both = {"svc": Ours(directory / "ours"), "FTS5": Sqlite(directory / "fts")}
        spent = dict.fromkeys(both, 0.0)
        for first in range(0, count, flush):
            part = texts[first : first + flush]
            for name, one in both.items():
                spent[name] += timed(lambda one=one, first=first, part=part: one.add(first, part))
        speeds = {name: count / seconds for name, seconds in spent.items()}
        rows.append((f"build, {flush:,} a commit, documents/s", speeds, "higher"))
    for one in both.values():
        one.open()
    rows.append(("bytes for each byte of text", {n: one.size() / size for n, one in both.items()}, "lower"))
    for label, asked in QUERIES.items():
        assert both["svc"].all(asked) == both["FTS5"].all(asked), label
        rows.append(
            (
                f"top ten, {label}, ms",
                {
                    n: 1e3 * median(lambda one=one, asked=asked: one.best(asked), 20 * rounds)
                    for n, one in both.items()
                },
                "lower",
            )
        )
    rows.append(
        (
            "all of a common word as a bitmap, ms",
            {n: 1e3 * median(lambda one=one: one.all("the"), rounds) for n, one in both.items()},
            "lower",
        )
    )
    below = 1e3 * median(lambda: both["svc"].best("the", below=[("d", "17")]), 20 * rounds)
    rows.append(
        ("top ten, common word, in 1% of the tree, ms", {"svc": below, "FTS5": float("nan")}, "lower")
    )
    number = count
    for batch in (1, 100):
        spans: dict[str, list[float]] = {name: [] for name in both}
        for _ in range(4 * rounds):
            for name, one in both.items():
                spans[name].append(
                    timed(lambda one=one, batch=batch, number=number: one.add(number, texts[:batch]))
                )
            number += batch
        rows.append(
            (
                f"open, commit {batch}, close, ms",
                {n: 1e3 * statistics.median(s) for n, s in spans.items()},
                "lower",
            )
        )
    rows.append(
        (
            "reader of a new state, ms",
            {n: 1e3 * median(one.open, 4 * rounds) for n, one in both.items()},
            "lower",
        )
    )
    print(f"\n{count:,} documents, {size / count:.0f} characters each\n")
    print("| | svc | FTS5 | FTS5 / svc |\n|---|---|---|---|")
    for label, figures, better in rows:
        ratio = figures["FTS5"] / figures["svc"]
        shown = ratio if better == "lower" else 1 / ratio
        print(f"| {label} | {figures['svc']:,.3g} | {figures['FTS5']:,.3g} | {shown:.2f} |")


def compare_building(directory: Path, count: int, rounds: int) -> None:
    """Prints how fast documents are taken in beside the library alone, in turns."""
    texts = sentences(count)
    print("\n| | svc | tantivy alone | svc / tantivy |\n|---|---|---|---|")
    for flush in (REBUILD_FLUSH, FLUSH):
        spent: dict[str, list[float]] = {"svc": [], "tantivy": []}
        for turn in range(rounds):
            for name, kind in (("svc", Ours), ("tantivy", Bare)):
                one = kind(directory / f"{name}-{flush}-{turn}")
                began = time.perf_counter()
                for first in range(0, count, flush):
                    one.add(first, texts[first : first + flush])
                spent[name].append(time.perf_counter() - began)
        ours, bare = (count / statistics.median(spent[name]) for name in ("svc", "tantivy"))
        print(f"| build, {flush:,} a commit, documents/s | {ours:,.3g} | {bare:,.3g} | {ours / bare:.2f} |")


# -- ranking ---------------------------------------------------------------------------------------

ASKED = [
    "parse json",
    "open file",
    "regular expression",
    "thread pool",
    "http request",
    "unicode string",
    "sort list",
    "date time zone",
    "random number",
    "matrix",
    "temporary directory",
    "compress data",
    "test fixture",
    "database connection",
    "cache result",
    "iterator",
    "context manager",
    "exception raised",
    "hash function",
    "encode bytes",
    "socket server",
    "command line arguments",
    "type annotation",
    "memory buffer",
    "plugin hook",
    "deprecated",
    "documentation builder",
    "signal handler",
    "lock acquire",
    "web socket",
    "password",
    "xml parser",
    "color output terminal",
    "merge dictionaries",
    "garbage collector",
    "lazy import",
    "wheel package version",
    "retry timeout",
    "log message format",
    "subprocess",
    '"keyword arguments"',
    '"file descriptor"',
    '"return value"',
    '"default value"',
    "iter*",
    "serial* OR deserial*",
    "certificate -tls",
    "event loop -gevent",
    "query",
    "index",
]


def docstrings() -> Iterator[str]:
    """Yields the docstrings of everything that is installed, and of the standard library."""
    places = [
        Path(ast.__file__).parent,
        *(Path(entry) for entry in sys.path if entry.endswith("site-packages")),
    ]
    seen: set[str] = set()
    for place in places:
        for file in sorted(place.rglob("*.py")):
            try:
                tree = ast.parse(file.read_text(encoding="utf-8"))
            except (SyntaxError, ValueError, RecursionError, OSError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    text = ast.get_docstring(node, clean=False)
                    if text and len(text) > 60 and text not in seen:
                        seen.add(text)
                        yield text


def compare_ranks(directory: Path) -> None:
    texts = list(docstrings())
    ours, fts = Ours(directory / "ours-docs"), Sqlite(directory / "fts-docs")
    for one in (ours, fts):
        one.add(0, texts)
        one.open()
    print(f"\n{len(texts):,} docstrings\n")
    print(
        "| searches | number | as many found | first ten in common | least | our first in their first three |"
    )
    print("|---|---|---|---|---|---|")
    kinds = {
        "words": [asked for asked in ASKED if not set('"*-') & set(asked)],
        "phrases and others": [asked for asked in ASKED if set('"-') & set(asked)],
        "beginnings of words": [asked for asked in ASKED if "*" in asked],
    }
    for kind, searches in kinds.items():
        same, first, counts = [], 0, 0
        for asked in searches:
            left, right = ours.best(asked), fts.best(asked)
            counts += ours.all(asked) == fts.all(asked)
            same.append(len(set(left) & set(right)) / max(1, len(left), len(right)))
            first += bool(left) and left[0] in right[:3]
        figures = [len(searches), counts, f"{statistics.mean(same):.1%}", f"{min(same):.0%}", first]
        print("|", " | ".join(map(str, [kind, *figures])), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="svc-fulltext-"))
    try:
        measure(directory, given.documents, given.rounds)
        compare_building(directory, given.documents, given.rounds)
        compare_ranks(directory)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
