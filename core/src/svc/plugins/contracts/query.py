"""Query operators: what a leaf of a query may ask of a field.

An operator checks its operands once, names the index types that can serve it, and judges single values:
that is how candidates are confirmed and how versions without an index are answered by a walk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from svc.plugins.contracts.indexing import FieldValue, Lookup

__all__ = ["QueryOperator"]


class QueryOperator(ABC):
    """One operator, such as ``eq`` or ``similar``. Stateless; used by many threads at once.

    Attributes:
        name: what the ``op`` of a leaf says.
        index_types: names of the index types that serve it, best first; the first is the one an error
            tells a person to add.
    """

    name: ClassVar[str]
    index_types: ClassVar[tuple[str, ...]]

    @abstractmethod
    def check(self, lookup: Lookup) -> Lookup:
        """Returns the lookup with its operands checked and in normal form, defaults filled in.

        Raises:
            InvalidInput: an operand is missing or of the wrong type; names it.
        """

    @abstractmethod
    def score(self, values: Sequence[FieldValue], lookup: Lookup) -> float | None:
        """How well a document's values match: 1.0 is exact, None is not at all. Does not block."""
