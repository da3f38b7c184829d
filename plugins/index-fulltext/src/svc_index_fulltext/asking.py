"""What a search asks of one index: words as that index has them, and whether some documents answer it.

``resolve`` takes the tree that was typed to words. ``documents_of`` finds what answers it anywhere that
knows which documents have a word: that is the meaning of a search. Tests compare the library with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple, Protocol

from pyroaring import BitMap

from svc_index_fulltext.analysis import Analysis
from svc_index_fulltext.syntax import Atom, Either, Every, Item

__all__ = [
    "AllOf",
    "AnyOf",
    "Beginning",
    "Node",
    "Nothing",
    "Phrase",
    "Term",
    "WordSource",
    "documents_of",
    "positive_leaves",
    "resolve",
]


class Term(NamedTuple):
    """A word of the index."""

    text: str


class Beginning(NamedTuple):
    """Any word of the index that begins so."""

    text: str


class Phrase(NamedTuple):
    """Words at fixed distances; at least two.

    Attributes:
        parts: (distance from the first, word); the first is at 0.
    """

    parts: tuple[tuple[int, str], ...]


class AllOf(NamedTuple):
    """All of some, and none of others.

    Attributes:
        wanted: at least one.
        unwanted: may be empty.
    """

    wanted: tuple[Node, ...]
    unwanted: tuple[Node, ...]


class AnyOf(NamedTuple):
    """At least one of two or more."""

    items: tuple[Node, ...]


class Nothing(NamedTuple):
    """What no document answers: all its words are stop words, or signs."""


Node = Term | Beginning | Phrase | AllOf | AnyOf | Nothing


class WordSource(Protocol):
    """Which documents have a word. Bitmaps that it returns are not changed."""

    def having(self, word: str) -> BitMap:
        """Returns the documents that have a word."""

    def beginning(self, prefix: str) -> BitMap:
        """Returns the documents that have a word that begins so."""

    def having_phrase(self, parts: tuple[tuple[int, str], ...], among: BitMap) -> BitMap:
        """Returns those of some documents that have words at fixed distances, in one value."""


def resolve(item: Item, analysis: Analysis) -> Node:
    """Returns what a search asks of an index.

    What has no words, such as a stop word or a sign, is left out. Where nothing else is wanted, nothing is
    found.
    """
    node = _resolved(item, analysis)
    return Nothing() if node is None else node


def _resolved(item: Item, analysis: Analysis) -> Node | None:
    match item:
        case Atom():
            return _resolved_atom(item, analysis)
        case Every():
            wanted = _resolved_items(item.wanted, analysis)
            unwanted = _resolved_items(item.unwanted, analysis)
            if not wanted:
                return None
            return wanted[0] if len(wanted) == 1 and not unwanted else AllOf(wanted, unwanted)
        case Either():
            items = _resolved_items(item.items, analysis)
            if len(items) < 2:
                return items[0] if items else None
            return AnyOf(items)


def _resolved_items(items: tuple[Item, ...], analysis: Analysis) -> tuple[Node, ...]:
    resolved = (_resolved(item, analysis) for item in items)
    return tuple(node for node in resolved if node is not None)


def _resolved_atom(atom: Atom, analysis: Analysis) -> Node | None:
    whole = _adjacent(atom.text, analysis)
    if not atom.prefix or analysis.ends_in_run(atom.text):
        return whole
    plain = analysis.asked_words(atom.text, plain=True)
    if not plain:
        return whole
    beginning: Node = Beginning(plain[-1].text)
    before = [_adjacent(word.text, analysis) for word in plain[:-1]]
    known = tuple(node for node in before if node is not None)
    if known:
        beginning = AllOf((*known, beginning), ())
    # A stem may be shorter than the word that it stands for: relation* also means what relation means.
    if analysis.language is not None and whole is not None and whole != beginning:
        return AnyOf((beginning, whole))
    return beginning


def _adjacent(text: str, analysis: Analysis) -> Node | None:
    """Returns what asks for the words of a text, one behind the other."""
    words = analysis.asked_words(text)
    if not words:
        return None
    if len(words) == 1:
        word = words[0].text
        return Beginning(word) if analysis.is_character(word) else Term(word)
    first = words[0].position
    return Phrase(tuple((word.position - first, word.text) for word in words))


def documents_of(node: Node, source: WordSource) -> BitMap:
    """Returns the documents that answer a search."""
    match node:
        case Term():
            return source.having(node.text)
        case Beginning():
            return source.beginning(node.text)
        case Phrase():
            among = reduce(BitMap.__and__, (source.having(word) for _, word in node.parts))
            return source.having_phrase(node.parts, among) if among else among
        case AllOf():
            found = reduce(BitMap.__and__, (documents_of(item, source) for item in node.wanted))
            for item in node.unwanted:
                found = found - documents_of(item, source)
            return found
        case AnyOf():
            return BitMap.union(*(documents_of(item, source) for item in node.items))
        case Nothing():
            return BitMap()


def positive_leaves(node: Node) -> Iterator[Term | Beginning | Phrase]:
    """Yields what a document may have for which it was found."""
    match node:
        case Term() | Beginning() | Phrase():
            yield node
        case AllOf():
            for item in node.wanted:
                yield from positive_leaves(item)
        case AnyOf():
            for item in node.items:
                yield from positive_leaves(item)
