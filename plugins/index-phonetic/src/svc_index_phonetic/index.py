"""The index type ``phonetic``: how the words of a text sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from svc_query.api import TermIndexType, Value

from svc.errors import InvalidInput
from svc_index_phonetic.coding import ALGORITHMS, DEFAULT_ALGORITHM, codes_of, words_of

__all__ = ["PRIMARY", "SECONDARY", "PhoneticIndex", "term_of"]

PRIMARY = b"\x01"
SECONDARY = b"\x02"


class PhoneticIndex(TermIndexType):
    """Texts with words that sound alike."""

    name: ClassVar[str] = "phonetic"
    format: ClassVar[int] = 1
    options: ClassVar[frozenset[str]] = frozenset({"algorithm"})

    def normalize(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Takes ``algorithm``.

        Raises:
            InvalidInput: there is no such algorithm.
        """
        algorithm = options.get("algorithm", DEFAULT_ALGORITHM)
        if algorithm not in ALGORITHMS:
            raise InvalidInput(f"The algorithms of phonetic are {', '.join(ALGORITHMS)}.", field="algorithm")
        return {"algorithm": algorithm}

    def terms(self, value: Value, options: Mapping[str, Any]) -> set[bytes]:
        """Returns the codes of the words of a text; other values have none."""
        if not isinstance(value, str):
            return set()
        algorithm = options["algorithm"]
        terms = set()
        for word in words_of(value):
            primary, secondary = codes_of(word, algorithm)
            terms.add(term_of(PRIMARY, primary))
            if secondary:
                terms.add(term_of(SECONDARY, secondary))
        return terms


def term_of(rank: bytes, code: str) -> bytes:
    """Returns the term of a code that is a word's primary or secondary one."""
    return rank + code.encode("utf-8", "surrogatepass")
