"""What the operators over texts mean: every word of every text is compared, letter by letter."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

from doublemetaphone import doublemetaphone
from rapidfuzz.distance import JaroWinkler


def fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def words(text: str) -> list[str]:
    """What stands between white space and punctuation; texts here have none but that of ASCII."""
    parted = "".join(
        " " if one.isspace() or (one.isascii() and not one.isalnum()) else one for one in fold(text)
    )
    return parted.split()


def contains(value: str, wanted: str) -> bool:
    return fold(wanted) in fold(value)


def edits(left: str, right: str) -> int:
    """Letters to put in, take out or change, or neighbours to swap, no stretch of text twice."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for at, letter in enumerate(left, 1):
        following = [at]
        for other_at, other in enumerate(right, 1):
            cost = min(row[other_at] + 1, following[-1] + 1, row[other_at - 1] + (letter != other))
            swapped = at > 1 and other_at > 1 and letter == right[other_at - 2] and left[at - 2] == other
            if swapped:
                cost = min(cost, before[other_at - 2] + 1)
            following.append(cost)
        before, row = row, following
    return row[-1]


def fuzzy(value: str, wanted: str, leaf: dict[str, Any]) -> float | None:
    """Each word has one that is near to it; the mean of the nearest."""
    total = 0.0
    asked = list(dict.fromkeys(words(wanted)))
    for word in asked:
        best = max((nearness(word, other, leaf) for other in words(value)), default=0.0)
        if best <= 0:
            return None
        total += best
    return total / len(asked)


def nearness(word: str, other: str, leaf: dict[str, Any]) -> float:
    if leaf.get("algorithm") == "jaro_winkler":
        found = JaroWinkler.similarity(word, other)
        return found if found >= leaf.get("threshold", 0.85) else 0.0
    most = leaf.get("fuzziness", "auto")
    if most == "auto":
        most = 0 if len(word) <= 2 else 1 if len(word) <= 5 else 2
    distance = edits(word, other)
    return 1 - distance / max(len(word), len(other)) if distance <= most else 0.0


def triples(text: str) -> set[bytes]:
    data = b"\xfe" + fold(text).encode() + b"\xff"
    return {data[at : at + 3] for at in range(len(data) - 2)}


def similar(value: str, wanted: str, leaf: dict[str, Any]) -> float | None:
    """Triples that both have, over those that either has."""
    left, right = triples(value), triples(wanted)
    shared = left & right
    if not shared:
        return None
    score = len(shared) / len(left | right)
    return score if score >= leaf.get("threshold", 0.3) else None


@cache
def codes(word: str) -> tuple[str, str]:
    plain = "".join(one for one in unicodedata.normalize("NFKD", word) if not unicodedata.combining(one))
    if not (plain.isascii() and plain.isalpha() and plain.islower()):
        return f"={word}", ""
    first, second = doublemetaphone(plain)
    first = first or second or f"={plain}"
    return first, "" if second == first else second


def phonetic(value: str, wanted: str) -> float | None:
    """Each word has one that sounds like it; the mean of the best."""
    total = 0.0
    asked = list(dict.fromkeys(codes(word) for word in words(wanted)))
    for code in asked:
        best = max((alike(code, codes(word)) for word in words(value)), default=0.0)
        if not best:
            return None
        total += best
    return total / len(asked)


def alike(left: tuple[str, str], right: tuple[str, str]) -> float:
    if left[0] == right[0]:
        return 1.0
    if left[0] == right[1] or (left[1] and left[1] == right[0]):
        return 0.8
    return 0.6 if left[1] and left[1] == right[1] else 0.0


def best_of(value: str, wanted: str, leaf: dict[str, Any]) -> float | None:
    """``match``: the best of all of them, each with what it takes of itself."""
    found = [1.0 if contains(value, wanted) else None, similar(value, wanted, {})]
    found += [fuzzy(value, wanted, {}), phonetic(value, wanted)]
    scores = [score for score in found if score is not None]
    return max(scores, default=None)


def search(value: str, wanted: str) -> bool:
    """Words in any order, ``-word``, ``OR``, ``prefix*``, or one phrase; no two of these in one search."""
    own = [plain(word) for word in words(value)]
    if wanted.startswith('"'):
        phrase = [plain(word) for word in words(wanted)]
        return any(own[at : at + len(phrase)] == phrase for at in range(len(own)))
    if " OR " in wanted:
        return any(plain(word) in own for word in wanted.split(" OR "))
    for word in wanted.split():
        bare = plain(word.strip("-*"))
        found = any(one.startswith(bare) if word.endswith("*") else one == bare for one in own)
        if found is word.startswith("-"):
            return False
    return True


def plain(word: str) -> str:
    """A word without case and accents."""
    return "".join(one for one in unicodedata.normalize("NFKD", fold(word)) if not unicodedata.combining(one))
