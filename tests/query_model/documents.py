"""Random documents, and what is in their fields by the configurations that hold for them."""

from __future__ import annotations

import random
import re
from typing import Any

Json = Any

BOOKS: dict[str, Json] = {
    "glob": "**/*.json",
    "indexes": [
        {"name": "title", "type": ["exact", "trigram", "phonetic"]},
        {"name": "year", "type": "exact", "value_type": "integer"},
        {"name": "price", "type": "exact", "value_type": "float"},
        {"name": "tags", "type": ["exact", "trigram"], "source": ["tags", ""]},
        {"name": "author", "type": ["exact", "trigram", "phonetic"], "source": ["author", "name"]},
        {"name": "open", "type": "exact", "value_type": "boolean"},
        {"name": "text", "type": "fulltext", "value_type": "text"},
        {"name": "mixed", "type": "exact"},
        {"name": "second", "type": "exact", "source": ["list", 1]},
        {"name": "notes", "type": "exact", "source": ["/^note_/i"]},
        {"name": "deep", "type": "exact", "source": ["nested", "", "", "value"]},
        {"name": "@size", "type": "exact"},
        {"name": "@filename", "type": ["exact", "trigram"]},
        {"name": "@extension", "type": "exact"},
        {"name": "@path", "type": ["exact", "trigram"]},
        {"name": "@updated_at", "type": "exact"},
        {"name": "@content_type", "type": "exact"},
        {"name": "@hash", "type": "exact"},
        {"name": "@created_at", "type": "exact"},
    ],
}
"""The configuration of ``/books``."""

OLD: dict[str, Json] = {
    "glob": "**/*.json",
    "indexes": [
        {"name": "year", "type": "exact", "value_type": "integer", "source": ["published", "year"]},
    ],
}
"""That of ``/books/old``: it is nearer, for one field."""

DIRECTORIES = ("books", "books/new", "books/old", "books/old/older", "books/a", "books/a/b", "elsewhere")
WORDS = (
    "war", "peace", "War and Peace", "the war", "warm", "", "a", "straße", "STRASSE", "été", "ete\u0301",
    "Łódź", "汉字", "汉", "😀 smile", "I", "\u0131", "İ", "i", "Tolstoi", "Tolstoy", "tolstoj", "a\nb",
    "z" * 40, "10", "2", "true", "null", "%", "_", "war%", "x y  z", "ﬁne", "fine",
)  # fmt: skip
TEXT_WORDS = ("war", "peace", "night", "sea", "old", "warm", "ship", "north", "wind", "a", "the", "Été")
NUMBERS = (
    0, 1, -1, 2, 10, 1990, 1991, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63, 10**18, 10**18 + 1, -0.0, 0.5,
    1.0, 1.5, 1e300, -1e300, 1e18, 2.0**53, 3.141592653589793, 5e-324,
)  # fmt: skip


def any_value(rng: random.Random) -> Json:
    return rng.choice((None, True, False, rng.choice(WORDS), rng.choice(NUMBERS), rng.choice(NUMBERS)))


def document(rng: random.Random) -> dict[str, Json]:
    """A document; many of its members are missing, null, or of no use."""
    found: dict[str, Json] = {}

    def sometimes(name: str, value: Json, odds: float = 0.8) -> None:
        if rng.random() < odds:
            found[name] = None if rng.random() < 0.06 else value

    words = lambda most: [rng.choice(WORDS) for _ in range(rng.randint(0, most))]  # noqa: E731
    sometimes("title", " ".join(words(2)) if rng.random() < 0.3 else rng.choice(WORDS), 0.95)
    sometimes("year", rng.choice([number for number in NUMBERS if isinstance(number, int)]))
    sometimes("published", {"year": rng.randint(1985, 1995)}, 0.6)
    sometimes("price", rng.choice([number for number in NUMBERS if isinstance(number, float)]))
    sometimes("tags", words(4))
    sometimes("author", {"name": rng.choice(WORDS)} if rng.random() < 0.9 else {"first": "x"})
    sometimes("open", rng.random() < 0.5)
    sometimes("mixed", any_value(rng), 0.9)
    sometimes("list", [any_value(rng) for _ in range(rng.randint(0, 3))], 0.7)
    for name in rng.sample(["note_a", "NOTE_b", "note", "anote_c"], rng.randint(0, 3)):
        found[name] = any_value(rng)
    sometimes("text", ", ".join(rng.choice(TEXT_WORDS) for _ in range(rng.randint(0, 12))), 0.7)
    nested = [[{"value": any_value(rng)} for _ in range(rng.randint(0, 2))] for _ in range(rng.randint(0, 2))]
    sometimes("nested", nested, 0.5)
    return found


def fields_of(path: tuple[str, ...], content: dict[str, Json]) -> dict[str, list[Json]]:
    """The values of the fields of a document, by the configurations above it."""
    if path[0] != "books" or not path[-1].endswith(".json"):
        return {}
    entries = {entry["name"]: entry for entry in BOOKS["indexes"] if not entry["name"].startswith("@")}
    if path[:2] == ("books", "old") and len(path) > 2:
        entries |= {entry["name"]: entry for entry in OLD["indexes"]}
    found = {}
    for name, entry in entries.items():
        values = [
            value
            for value in reached(content, entry.get("source", [name]))
            if fits(value, entry.get("value_type", "auto"))
        ]
        if values:
            found[name] = values
    return found


def reached(value: Json, steps: list[Json]) -> list[Json]:
    """What a source leads to."""
    if not steps:
        return [] if isinstance(value, dict | list) else [value]
    step, rest = steps[0], steps[1:]
    if step == "":
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [found for part in parts for found in reached(part, rest)]
    if isinstance(step, int):
        there = isinstance(value, list) and -len(value) <= step < len(value)
        return reached(value[step], rest) if there else []
    if not isinstance(value, dict):
        return []
    regex = re.fullmatch(r"/(.*)/(i?)", step)
    if regex is not None:
        pattern = re.compile(regex[1], re.IGNORECASE if regex[2] else 0)
        return [found for key, part in value.items() if pattern.search(key) for found in reached(part, rest)]
    return reached(value[step], rest) if step in value else []


def fits(value: Json, value_type: str) -> bool:
    """Whether a value is of a type, or null. The documents here have nothing that is to be converted."""
    if value is None or value_type == "auto":
        return True
    types: dict[str, tuple[type, ...]] = {
        "integer": (int,),
        "float": (float,),
        "boolean": (bool,),
        "text": (str,),
    }
    return isinstance(value, types[value_type]) and (value_type == "boolean" or not isinstance(value, bool))
