"""How words sound: the codes of a word under each algorithm."""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import combining, normalize

__all__ = ["ALGORITHMS", "DEFAULT_ALGORITHM", "MAXIMUM_WORD", "WORD", "codes_of", "fold", "words_of"]

ALGORITHMS = ("double_metaphone", "metaphone", "soundex")
DEFAULT_ALGORITHM = "double_metaphone"
MAXIMUM_WORD = 64
"""Characters of a word that count."""

WORD = re.compile(
    "[^\\s\\x00-\\x20!-/:-@\\[-`{-\\x7f\\u0080-\\u00bf\\u00d7\\u00f7\\u037e\\u0387\\u1fef\\u2000-\\u206f"
    "\\u3000-\\u303f\\uff00-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff65]+"
)
"""What stands between white space, control characters and punctuation; of every script, marks and all."""

_LATIN = re.compile("[a-z]+")


def fold(text: str) -> str:
    """Returns a text without regard to case and spelling of marks."""
    return text.lower() if text.isascii() else normalize("NFC", normalize("NFC", text).casefold())


def words_of(text: str) -> list[str]:
    """Returns the words of a text, folded, each with its first 64 characters."""
    return [word[:MAXIMUM_WORD] for word in WORD.findall(fold(text))]


@lru_cache(maxsize=65_536)
def codes_of(word: str, algorithm: str) -> tuple[str, str]:
    """Returns the primary and the secondary code of a folded word; empty where there is no secondary one.

    A word that is not of Latin letters, marks aside, has itself as its code, behind ``=``: it sounds like
    itself alone.
    """
    plain = "".join(letter for letter in normalize("NFKD", word) if not combining(letter))
    if _LATIN.fullmatch(plain) is None:
        return f"={word}", ""
    # Megabytes for who has no such index; each word comes here once.
    import jellyfish
    from doublemetaphone import doublemetaphone  # type: ignore[import-untyped]

    if algorithm == "soundex":
        return jellyfish.soundex(plain), ""
    if algorithm == "metaphone":
        return jellyfish.metaphone(plain) or f"={plain}", ""
    primary, secondary = doublemetaphone(plain)
    primary = primary or secondary or f"={plain}"
    return primary, secondary if secondary != primary else ""
