"""Texts as they are compared, and the terms of them.

Texts are compared without regard to case, in Unicode's form C. Terms are of two sorts: every three bytes of
the UTF-8 of a text, with one byte FE before it and two bytes FF behind; and each of its words behind a byte
FD. None of these bytes is part of UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from unicodedata import combining, normalize

__all__ = [
    "MAXIMUM_WORD",
    "WORD",
    "WORDS",
    "contain_terms",
    "fold",
    "fold_with_places",
    "similarity_terms",
    "text_terms",
    "word_term",
    "words_of",
]

MAXIMUM_WORD = 64
"""Characters of a word that count."""
MAXIMUM_TRIPLES = 48
_USUAL_TRIPLES = 10

WORD = re.compile(
    "[^\\s\\x00-\\x20!-/:-@\\[-`{-\\x7f\\u0080-\\u00bf\\u00d7\\u00f7\\u037e\\u0387\\u1fef\\u2000-\\u206f"
    "\\u3000-\\u303f\\uff00-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff65]+"
)
"""What stands between white space, control characters and punctuation; of every script, marks and all."""

WORDS = (b"\xfd", b"\xfe")
"""The range of the terms that are words."""

_UNPACKED = 768
"""Bytes of a text whose triples are cut at once."""

_START = b"\xfe"
_END = b"\xff"


def fold(text: str) -> str:
    """Returns a text as it is compared."""
    if text.isascii():
        return text.lower()
    return normalize("NFC", normalize("NFC", text).casefold())


def words_of(folded: str) -> list[str]:
    """Returns the words of a folded text, each with its first 64 characters."""
    return [word[:MAXIMUM_WORD] for word in WORD.findall(folded)]


def word_term(word: str) -> bytes:
    """Returns the term of a word."""
    return WORDS[0] + word.encode("utf-8", "surrogatepass")


def text_terms(text: str) -> set[bytes]:
    """Returns all terms of a text."""
    folded = fold(text)
    terms = _triples(_START + folded.encode("utf-8", "surrogatepass") + _END + _END)
    terms.update(map(word_term, words_of(folded)))
    return terms


def similarity_terms(folded: str) -> set[bytes]:
    """Returns the triples that tell how similar two texts are: with one byte at each end."""
    return _triples(_START + folded.encode("utf-8", "surrogatepass") + _END)


def contain_terms(folded: str) -> list[bytes]:
    """Returns triples that every text has which contains this one: first such as cover it, then some more.

    Those that overlap tell texts apart that have the others in other places, which costs less than tests.
    """
    data = folded.encode("utf-8", "surrogatepass")
    last = len(data) - 3
    if last < 0:
        return []
    # Some tens of triples leave no more to be found by others; what is left is tested.
    cover = (*range(0, last, 3)[:MAXIMUM_TRIPLES], last)
    more = range(last)[: max(0, _USUAL_TRIPLES - len(cover))]
    return list(dict.fromkeys(data[at : at + 3] for at in (*cover, *more)))


def fold_with_places(text: str) -> tuple[str, list[int]] | None:
    """Folds a text and says for each character of the result where in the text it comes from.

    Returns:
        The folded text, and the beginning of each of its characters' origin, with the end of the text behind
        the last; None when that can't be told (some decomposed Hangul).
    """
    folded = fold(text)
    if text.isascii():
        return folded, list(range(len(text) + 1))
    pieces: list[str] = []
    places: list[int] = []
    start = 0
    for end in range(1, len(text) + 1):
        # Marks belong to the character before them.
        if end < len(text) and combining(text[end]):
            continue
        piece = fold(text[start:end])
        pieces.append(piece)
        places.extend([start] * len(piece))
        start = end
    if "".join(pieces) != folded:
        return None
    return folded, [*places, len(text)]


def _triples(data: bytes) -> set[bytes]:
    size = len(data)
    if size > _UNPACKED:
        return {data[at : at + 3] for at in range(size - 2)}
    # Cut three times, each time a byte further on, in C: a third of the time that slices take.
    return {
        *_cut(size // 3)(data),
        *_cut((size - 1) // 3)(data, 1),
        *_cut((size - 2) // 3)(data, 2),
    }


@lru_cache(maxsize=_UNPACKED)
def _cut(count: int) -> Callable[..., tuple[bytes, ...]]:
    """Returns what takes so many triples from bytes, from an offset on."""
    return Struct("3s" * count).unpack_from
