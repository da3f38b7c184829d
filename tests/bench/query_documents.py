"""Small generated documents, and the same in SQLite: with indexes, FTS5 and FTS5's trigrams."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from svc.database import Database

__all__ = ["CONFIGURATION", "document", "documents", "fill", "fill_sqlite", "sqlite_database", "words"]

CONFIGURATION = {
    "glob": "**/*.json",
    "indexes": [
        {"name": "title", "type": ["exact", "trigram"], "value_type": "string"},
        {"name": "year", "type": "exact", "value_type": "integer"},
        {"name": "price", "type": "exact", "value_type": "float"},
        {"name": "author", "type": "exact", "value_type": "string"},
        {"name": "text", "type": "fulltext", "value_type": "text"},
    ],
}
"""What is indexed of them; the table has the same."""

SCHEMA = """
CREATE TABLE documents (path TEXT PRIMARY KEY, title TEXT, year INTEGER, price REAL, author TEXT, text TEXT);
CREATE INDEX of_title ON documents (title);
CREATE INDEX of_year ON documents (year);
CREATE INDEX of_price ON documents (price);
CREATE INDEX of_author ON documents (author);
CREATE VIRTUAL TABLE texts USING fts5 (text, content='documents', content_rowid='rowid');
CREATE VIRTUAL TABLE parts USING fts5 (title, content='documents', content_rowid='rowid', tokenize='trigram');
CREATE TRIGGER added AFTER INSERT ON documents BEGIN
    INSERT INTO texts (rowid, text) VALUES (new.rowid, new.text);
    INSERT INTO parts (rowid, title) VALUES (new.rowid, new.title);
END;
"""
_BATCH = 512
_WORDS = 20_000
_VOWELS, _CONSONANTS = "aeiou", "bcdfghklmnprstvw"


def words() -> list[str]:
    """A vocabulary: the first ones are the most frequent."""
    rng = random.Random(7)
    found: dict[str, None] = {}
    while len(found) < _WORDS:
        syllables = rng.choice((2, 2, 3, 3, 4))
        found["".join(rng.choice(_CONSONANTS) + rng.choice(_VOWELS) for _ in range(syllables))] = None
    return list(found)


def document(number: int, vocabulary: list[str]) -> dict[str, Any]:
    """One document; the same one for the same number."""
    rng = random.Random(number)

    def some(count: int) -> str:
        # About as frequent as words of a language are: the n-th one 1/n times as often as the first.
        return " ".join(vocabulary[int(_WORDS ** rng.random()) - 1] for _ in range(count))

    return {
        "title": f"{some(rng.randint(2, 5))} {number}",
        "year": rng.randint(1800, 2025),
        "price": round(rng.random() * 1000, 2),
        "author": f"{vocabulary[rng.randrange(40)]} {vocabulary[rng.randrange(50)]}",
        "text": some(30),
    }


def path_of(number: int) -> tuple[str, ...]:
    """Where a document stands: a thousand in each directory."""
    return ("docs", f"d{number // 1000}", f"n{number}.json")


def documents(count: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields numbered documents."""
    vocabulary = words()
    for number in range(count):
        yield number, document(number, vocabulary)


def fill(database: Database, count: int) -> None:
    """Stores documents, in commits of a thousand; the configuration is stored by itself."""
    waiting: list[tuple[int, bytes]] = []

    def store() -> None:
        with database.transaction() as transaction:
            for number, content in waiting:
                transaction.put(path_of(number), content, content_type="application/json")
        waiting.clear()

    for number, found in documents(count):
        waiting.append((number, json.dumps(found).encode()))
        if len(waiting) == 1000:
            store()
    if waiting:
        store()


def configure(database: Database) -> None:
    """Stores the configuration."""
    with database.transaction() as transaction:
        transaction.put(
            ("docs", ".svc-config", "indexes.json"),
            json.dumps(CONFIGURATION).encode(),
            content_type="application/json",
        )


def sqlite_database(path: Path) -> sqlite3.Connection:
    """An empty database with the table and its indexes, or the one that is there."""
    is_new = not path.exists()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    if is_new:
        connection.executescript(SCHEMA)
    return connection


def fill_sqlite(connection: sqlite3.Connection, contents: Iterator[tuple[int, bytes]]) -> None:
    """Reads documents and inserts them, a transaction for every 512."""
    insert = "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)"
    rows: list[tuple[Any, ...]] = []

    def store() -> None:
        connection.execute("BEGIN")
        connection.executemany(insert, rows)
        connection.execute("COMMIT")
        rows.clear()

    for number, content in contents:
        found = json.loads(content)
        path = "/" + "/".join(path_of(number))
        rows.append((path, found["title"], found["year"], found["price"], found["author"], found["text"]))
        if len(rows) == _BATCH:
            store()
    if rows:
        store()
