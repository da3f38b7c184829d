"""What operators give, which may be a stranger's: checked where it comes in, so that a fault has its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from svc.errors import InternalError
from svc_query.api import Predicate

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["best_of", "count_of", "documents_of", "predicate_of", "ranges_of", "score_of", "scores_of"]


def predicate_of(operator: str, giver: object, given: Any) -> Predicate:
    """Returns what ``compile`` of an operator gave."""
    if isinstance(given, Predicate):
        return given
    raise _fault(operator, giver, given, "what it compiles", "a Predicate")


def score_of(operator: str, giver: object, given: Any) -> float:
    """Returns the score of a document."""
    if isinstance(given, float | int) and 0 < given <= 1:
        return given
    raise _fault(operator, giver, given, "a score", "a number above 0 and at most 1")


def count_of(operator: str, giver: object, given: Any) -> int | None:
    """Returns an estimate."""
    if given is None or (isinstance(given, int) and given >= 0):
        return given
    raise _fault(operator, giver, given, "an estimate", "a number of documents, or None")


def documents_of(operator: str, giver: object, given: Any) -> BitMap | None:
    """Returns candidates."""
    from pyroaring import BitMap

    if given is None or isinstance(given, BitMap):
        return given
    raise _fault(operator, giver, given, "candidates", "a BitMap, or None")


def best_of(operator: str, giver: object, given: Any) -> list[tuple[int, float]]:
    """Returns the best documents with their scores."""
    if not isinstance(given, list):
        raise _fault(operator, giver, given, "the best documents", "a list of pairs")
    for pair in given:
        if not (isinstance(pair, tuple) and len(pair) == 2 and _is_number(pair[0])):
            raise _fault(operator, giver, pair, "one of the best documents", "a pair of a number and a score")
        score_of(operator, giver, pair[1])
    return given


def scores_of(operator: str, giver: object, given: Any) -> Mapping[int, float]:
    """Returns scores by the number of the document."""
    if not isinstance(given, Mapping):
        raise _fault(operator, giver, given, "scores", "a dictionary by the numbers of documents")
    for number, score in given.items():
        if not _is_number(number):
            raise _fault(operator, giver, number, "the number of a document", "one that it was asked for")
        score_of(operator, giver, score)
    return given


def ranges_of(operator: str, giver: object, given: Any, text: str, most: int) -> Sequence[tuple[int, int]]:
    """Returns where in a text a leaf matches, the first ``most`` of these places."""
    if not isinstance(given, list | tuple):
        raise _fault(operator, giver, given, "the places of matches", "a list of pairs")
    for place in given[:most]:
        is_pair = isinstance(place, tuple) and len(place) == 2 and all(map(_is_number, place))
        if not (is_pair and place[0] <= place[1] <= len(text)):
            raise _fault(operator, giver, place, "the place of a match", "a pair of places in the text")
    return given[:most]


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32


def _fault(operator: str, giver: object, given: Any, what: str, wanted: str) -> InternalError:
    return InternalError(
        f"The query operator {operator!r} gives {repr(given)[:100]} for {what}; it is {wanted}.",
        operator=operator,
        extension=type(giver).__module__.partition(".")[0],
    )
