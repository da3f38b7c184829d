"""What fuzzy and phonetic searches find, beside a look at every name with the same libraries.

    python tests/bench/query_quality.py [--searches 60]

The names are those of Debian's packages, as apt knows them. Each search is one of them with one letter
changed, left out or doubled, or two exchanged. Prints a table in Markdown:

- missed, too many: documents that one finds and the other does not.
- first ten in common: of the ranked answers with the best scores, ties taken as equal.
- meant one among them: whether the name that was misspelt is among the first ten.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import jellyfish
from doublemetaphone import doublemetaphone
from falcon.testing import TestClient
from rapidfuzz.distance import OSA, JaroWinkler
from svc_query.indexing import finish_work

from svc_testing import load_with_testing_auth, serve_in_process

PLUGIN_IDS = ("files", "versions", "query", "parsers", "index.exact", "index.trigram", "index.phonetic")
ALGORITHMS = ("soundex", "metaphone", "double_metaphone")
CONFIGURATION = {
    "glob": "**/*.json",
    "indexes": [
        {"name": "name", "type": "trigram"},
        *({"name": one, "source": ["name"], "type": "phonetic", "algorithm": one} for one in ALGORITHMS),
        {"name": "both", "source": ["name"], "type": ["trigram", "phonetic"]},
    ],
}
PAGE = 1_000

Score = Callable[[str, str], float]
"""How well a name answers a search; 0: not at all."""


@cache
def words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.findall("[a-z0-9]+", text.lower())))


def mean_of_best(near: Score, search: str, name: str) -> float:
    best = [max((near(word, other) for other in words(name)), default=0.0) for word in words(search)]
    return sum(best) / len(best) if all(best) else 0.0


def few_edits(word: str, other: str) -> float:
    edits = OSA.distance(word, other)
    most = 0 if len(word) <= 2 else 1 if len(word) <= 5 else 2
    return 1 - edits / max(len(word), len(other)) if edits <= most else 0.0


def jaro_winkler(word: str, other: str) -> float:
    found = JaroWinkler.similarity(word, other)
    return found if found >= 0.85 else 0.0


@cache
def triples(text: str) -> frozenset[bytes]:
    data = b"\xfe" + text.lower().encode() + b"\xff"
    return frozenset(data[at : at + 3] for at in range(len(data) - 2))


def similar(search: str, name: str) -> float:
    left, right = triples(search), triples(name)
    found = len(left & right) / len(left | right)
    return found if found >= 0.3 else 0.0


def contains(search: str, name: str) -> float:
    return float(search.lower() in name.lower())


@cache
def code(algorithm: str, word: str) -> tuple[str, str]:
    """The primary and the secondary code; a word that has none is its own."""
    primary, secondary = "", ""
    if word.isalpha():
        if algorithm == "double_metaphone":
            primary, secondary = doublemetaphone(word)
        else:
            primary = getattr(jellyfish, algorithm)(word)
    return primary or "=" + word, secondary if secondary != primary else ""


def sounds_alike(algorithm: str, word: str, other: str) -> float:
    (first, second), (other_first, other_second) = code(algorithm, word), code(algorithm, other)
    if first == other_first:
        return 1.0
    if first == other_second or second == other_first:
        return 0.8
    return 0.6 if second and second == other_second else 0.0


FUZZY = partial(mean_of_best, few_edits)
SOUNDS: Mapping[str, Score] = {one: partial(mean_of_best, partial(sounds_alike, one)) for one in ALGORITHMS}


def best_of_all(search: str, name: str) -> float:
    return max(part(search, name) for part in (contains, similar, FUZZY, SOUNDS["double_metaphone"]))


SEARCHES: Mapping[str, tuple[dict[str, Any], Score]] = {
    "similar": ({"field": "name", "op": "similar"}, similar),
    "fuzzy": ({"field": "name", "op": "fuzzy"}, FUZZY),
    "fuzzy, jaro_winkler": (
        {"field": "name", "op": "fuzzy", "algorithm": "jaro_winkler"},
        partial(mean_of_best, jaro_winkler),
    ),
    **{
        f"phonetic, {one.replace('_', ' ')}": ({"field": one, "op": "phonetic"}, score)
        for one, score in SOUNDS.items()
    },
    "match": ({"field": "both", "op": "match"}, best_of_all),
}


def names() -> list[str]:
    """The names of all packages that apt knows."""
    done = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True)
    return sorted(set(done.stdout.split()))


def misspelt(name: str, rng: random.Random) -> str:
    at = rng.randrange(1, len(name) - 1)
    letter = rng.choice("aeiournstl")
    return rng.choice(
        [
            name[:at] + name[at + 1] + name[at] + name[at + 2 :],
            name[:at] + name[at + 1 :],
            name[:at] + name[at] + name[at:],
            name[:at] + letter + name[at + 1 :],
        ]
    )


class Answers:
    """What a database of the names answers."""

    def __init__(self, client: TestClient) -> None:
        self._client = client

    def all(self, where: Mapping[str, Any]) -> list[tuple[str, float]]:
        """All names that match, with their scores, best first."""
        found: list[tuple[str, float]] = []
        query: dict[str, Any] = {"path": "/n", "where": where, "limit": PAGE, "select": ["name", "@score"]}
        while True:
            answer = self._client.simulate_post("/query", json=query)
            assert answer.status_code == 200, (query, answer.text)
            found += [(row["name"], row["score"]) for row in answer.json["results"]]
            if not answer.json["has_more"]:
                return found
            query["after"] = answer.json["next_cursor"]


def compare(
    answers: Answers, every: Sequence[str], searches: Sequence[tuple[str, str]]
) -> Iterator[list[str]]:
    """Yields the rows of the table: ``searches`` are the names that are meant, and what is asked."""
    for label, (where, score) in SEARCHES.items():
        hits = missed = too_many = together = meant_first = 0
        for meant, asked in searches:
            found = dict(answers.all({**where, "value": asked}))
            scores = {name: own for name in every if (own := score(asked, name)) > 0}
            hits += len(scores)
            missed += len(scores.keys() - found.keys())
            too_many += len(found.keys() - scores.keys())
            least = sorted(scores.values(), reverse=True)[:10][-1] if scores else 0.0
            first = list(found)[:10]
            together += all(scores.get(name, 0.0) >= least - 1e-9 for name in first)
            meant_first += meant in first
        share = [f"{100 * one / len(searches):.0f}%" for one in (together, meant_first)]
        yield [label, f"{hits:,}", str(missed), str(too_many), *share]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=60)
    options = parser.parse_args()
    every, rng = names(), random.Random(5)
    long_enough = [name for name in every if len(name) > 7]
    searches = [(name, misspelt(name, rng)) for name in rng.sample(long_enough, options.searches)]
    loaded = load_with_testing_auth(*PLUGIN_IDS)
    with tempfile.TemporaryDirectory() as place, serve_in_process(Path(place) / "x.svcdb", loaded) as served:
        app, database, _ = served
        with database.transaction() as transaction:
            transaction.put(
                ("n", ".svc-config", "indexes.json"),
                json.dumps(CONFIGURATION).encode(),
                content_type="application/json",
            )
        with database.transaction() as transaction:
            for number, name in enumerate(every):
                content = json.dumps({"name": name}).encode()
                path = ("n", str(number % 100), f"{number}.json")
                transaction.put(path, content, content_type="application/json")
        assert finish_work(database)
        print(f"\n{len(every):,} names, {len(searches)} searches of each kind\n")
        print("| | hits | missed | too many | first ten in common | meant one among them |")
        print("|---|---|---|---|---|---|")
        for row in compare(Answers(TestClient(app)), every, searches):
            print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
