"""Random queries over the documents of ``documents.py``."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from query_model.documents import DIRECTORIES, NUMBERS, TEXT_WORDS, WORDS
from query_model.texts import words

Json = Any

EXACT = ("eq", "ne", "in", "gt", "gte", "lt", "lte", "between", "prefix")
NUMERIC = EXACT[:-1]
"""A number begins with nothing."""
RANGES = ("gt", "gte", "lt", "lte", "between")
TEXT = ("contains", "similar", "fuzzy")
SOUND = ("phonetic", "match")

WORD = st.sampled_from(WORDS)
PIECE = st.one_of(
    WORD, st.builds(lambda word, a, b: word[a : a + b], WORD, st.integers(0, 5), st.integers(1, 5))
)
INTEGER = st.one_of(st.sampled_from([one for one in NUMBERS if isinstance(one, int)]), st.integers(-3, 2000))
NUMBER = st.one_of(st.sampled_from(NUMBERS), INTEGER)
ANY = st.one_of(st.none(), st.booleans(), NUMBER, PIECE)
FILENAME = st.builds(lambda number, cut: f"d{number}.json"[:cut], st.integers(0, 60), st.integers(1, 9))
DIRECTORY = st.sampled_from(DIRECTORIES)
PATHS = st.builds(lambda directory, name: f"/{directory}/{name}", DIRECTORY, FILENAME)
TIMES = st.integers(1_000, 1_400)
HASHES = st.sampled_from(["", "0", "a", "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"])

FIELDS: dict[str, tuple[tuple[str, ...], st.SearchStrategy[Json]]] = {
    "title": ((*EXACT, *TEXT, *SOUND), PIECE),
    "year": (NUMERIC, INTEGER),
    "price": (NUMERIC, NUMBER),
    "tags": ((*EXACT, *TEXT), PIECE),
    "author": ((*EXACT, *TEXT, *SOUND), PIECE),
    "open": (("eq", "ne", "in"), st.booleans()),
    "mixed": (EXACT, ANY),
    "second": (EXACT, ANY),
    "notes": (EXACT, ANY),
    "deep": (EXACT, ANY),
    "@size": (NUMERIC, st.integers(0, 400)),
    "@filename": ((*EXACT, *TEXT), FILENAME),
    "@extension": (EXACT, st.sampled_from(["json", "txt", "js", ""])),
    "@path": ((*EXACT, *TEXT), PATHS),
    "@updated_at": (NUMERIC, TIMES),
    "@created_at": (NUMERIC, TIMES),
    "@content_type": (EXACT, st.sampled_from(["application/json", "text/plain", "application"])),
    "@hash": (EXACT, HASHES),
}
"""What may be asked of each field, and what it is compared with."""


def options_of(op: str) -> st.SearchStrategy[dict[str, Json]]:
    if op == "similar":
        return st.sampled_from([{}, {"threshold": 0.1}, {"threshold": 0.5}, {"threshold": 1.0}])
    if op == "fuzzy":
        edits = st.sampled_from([{}, {"fuzziness": "auto"}, *({"fuzziness": most} for most in range(4))])
        return st.one_of(edits, st.just({"algorithm": "jaro_winkler"}))
    return st.just({})


@st.composite
def leaves(draw: st.DrawFn) -> dict[str, Json]:
    name = draw(st.sampled_from(list(FIELDS)))
    operators, values = FIELDS[name]
    op = draw(st.sampled_from((*operators, "exists")))
    leaf: dict[str, Json] = {"field": name, "op": op}
    if op == "exists":
        return {**leaf, "value": draw(st.booleans())}
    if op == "in":
        return {**leaf, "value": draw(st.lists(values, max_size=4))}
    if op in (*TEXT, *SOUND):
        return {
            **leaf,
            "value": draw(values.filter(lambda value: bool(words(value)))),
            **draw(options_of(op)),
        }
    if op == "prefix":
        return {
            **leaf,
            "value": draw(PIECE if name in ("mixed", "second", "notes", "deep") else values.map(str)),
        }
    if op in RANGES:
        bounds = values.filter(lambda value: value is not None and not isinstance(value, bool))
        leaf["value"] = low = draw(bounds)
        if op == "between":
            leaf["value2"] = draw(bounds.filter(lambda high: isinstance(high, str) is isinstance(low, str)))
        return leaf
    may_be_null = not name.startswith("@") and draw(st.integers(0, 9)) == 0
    return {**leaf, "value": None if may_be_null else draw(values)}


FILTERS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds(lambda part: {"not": part}, inner),
        st.builds(
            lambda word, parts: {word: parts},
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=1, max_size=4),
        ),
    ),
    max_leaves=6,
)
ORDERS = st.lists(
    st.tuples(
        st.sampled_from(
            ["title", "year", "price", "tags", "mixed", "@size", "@path", "@filename", "@updated_at"]
        ),
        st.booleans(),
    ),
    max_size=3,
    unique_by=lambda one: one[0],
)
PLACES = st.sampled_from(["/books", "/books", "/books/old", "/books/new", "/books/a", "/books/old/older"])


@st.composite
def queries(draw: st.DrawFn) -> dict[str, Json]:
    """A query that is answered with rows."""
    where = draw(st.one_of(FILTERS, st.lists(leaves(), max_size=3)))
    query: dict[str, Json] = {
        "path": draw(PLACES),
        "where": where,
        "limit": draw(st.sampled_from([1, 3, 20, 1000])),
    }
    order = draw(ORDERS)
    if order:
        query["order_by"] = [
            {"field": name, "direction": "desc"} if descending else {"field": name}
            for name, descending in order
        ]
    if draw(st.booleans()):
        query["include_total"] = True
    if draw(st.integers(0, 5)) == 0:
        query["offset"] = draw(st.integers(0, 10))
    return query


WORDS_OF_TEXTS = st.sampled_from([*TEXT_WORDS, "WAR", "ete", "nowhere"])
SEARCHES = st.one_of(
    st.lists(WORDS_OF_TEXTS, min_size=1, max_size=3).map(" ".join),
    st.lists(WORDS_OF_TEXTS, min_size=2, max_size=3).map(" OR ".join),
    st.builds(lambda one, other: f"{one} -{other}", WORDS_OF_TEXTS, WORDS_OF_TEXTS),
    st.lists(WORDS_OF_TEXTS, min_size=2, max_size=3).map(lambda found: '"' + " ".join(found) + '"'),
    st.builds(lambda word, length: f"{word[:length]}*", WORDS_OF_TEXTS, st.integers(1, 3)),
)


@st.composite
def searches(draw: st.DrawFn) -> dict[str, Json]:
    """A query with words in it; its rows come by path, for how well words fit is the index's to say."""
    found: dict[str, Json] = {"field": "text", "op": "search", "value": draw(SEARCHES)}
    shape = draw(st.sampled_from(["alone", "and", "or", "not", "and not"]))
    where = {
        "alone": found,
        "and": {"and": [found, draw(leaves())]},
        "or": {"or": [draw(leaves()), found]},
        "not": {"not": found},
        "and not": {"and": [draw(leaves()), {"not": found}]},
    }[shape]
    return {"path": draw(PLACES), "where": where, "limit": 1000, "order_by": [{"field": "@path"}]}
