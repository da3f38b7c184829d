"""What the operator asks of an index, be it of files or in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from pyroaring import BitMap
from svc_query.api import LibraryReader

from svc.plugin import Path
from svc_index_fulltext.analysis import Analysis
from svc_index_fulltext.asking import Node
from svc_index_fulltext.syntax import Item

__all__ = ["SearchReader"]


class SearchReader(LibraryReader):
    """Answers searches. Whatever it answers may hold documents that are dead.

    Attributes:
        analysis: what found its words.
    """

    analysis: Analysis

    @abstractmethod
    def resolve(self, item: Item) -> Node:
        """Returns what a search asks of this index; cheap."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many documents there are."""

    @abstractmethod
    def count_word(self, word: str) -> int:
        """Returns how many documents have a word; cheap."""

    @abstractmethod
    def estimate(self, node: Node) -> int:
        """Returns how many documents answer a search, at most; cheap."""

    @abstractmethod
    def matching(self, node: Node) -> BitMap:
        """Returns the numbers of the documents that answer a search. May block."""

    @abstractmethod
    def best(self, node: Node, limit: int, below: Sequence[Path] | None) -> list[tuple[int, float]]:
        """Returns (number, score) of the best documents, best first. May block."""

    @abstractmethod
    def scores(self, node: Node, documents: BitMap) -> dict[int, float]:
        """Returns the scores of some documents; those that don't answer are left out. May block."""
