"""Makes a plan of a filter: finds the operator and the indexes of each condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from svc.errors import InvalidInput
from svc.plugin import parse_time
from svc_query.api import Leaf, Predicate, QueryOperator
from svc_query.built_in_operators import Exists, ExistsPredicate, Match
from svc_query.executing.visibility import Scope
from svc_query.filters import And, Filter, LeafFilter, Not, Or
from svc_query.indexing.own_types import PRESENCE, presence_term
from svc_query.planning.given import count_of, predicate_of
from svc_query.planning.nodes import (
    AllNode,
    AndNode,
    LeafNode,
    Node,
    NotNode,
    OrNode,
    PresenceNode,
    Source,
)
from svc_query.snapshot import VIRTUAL_FIELDS, Coverage, FieldIndex, FieldUse, Snapshot

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["Compiler", "require_field"]


class Compiler:
    """Makes plans for one state and one caller."""

    def __init__(
        self,
        snapshot: Snapshot,
        scope: Scope,
        coverage: Coverage,
        operators: Mapping[str, QueryOperator],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._look = look
        self._snapshot = snapshot
        self._scope = scope
        self._coverage = coverage
        self._operators = operators
        self._total = len(scope.numbers)

    def compile(self, filter_: Filter) -> Node:
        """Returns the plan of a filter.

        Raises InvalidInput where an operator or a field is not there, or no index of the right type, or a
        value is not one that the operator takes.
        """
        node = self._compile(filter_)
        node.estimate = min(node.estimate, self._total)
        return node

    def _compile(self, filter_: Filter) -> Node:
        if isinstance(filter_, LeafFilter):
            return self._leaf(filter_)
        if isinstance(filter_, Not):
            child = self.compile(filter_.child)
            node: Node = NotNode(child)
            node.estimate = self._total
            return node
        children = [self.compile(child) for child in filter_.children]
        if isinstance(filter_, Or):
            node = OrNode(children)
            node.estimate = sum(child.estimate for child in children)
            return node
        assert isinstance(filter_, And), "there is nothing else"
        node = AndNode(children) if children else AllNode()
        node.estimate = min((child.estimate for child in children), default=self._total)
        return node

    def _leaf(self, leaf: LeafFilter) -> Node:
        self._look()
        operator = self._operators.get(leaf.op)
        if operator is None:
            raise InvalidInput(
                f"There is no operator {leaf.op!r}.", field="where.op", operators=sorted(self._operators)
            )
        _check_members(leaf, operator)
        use = require_field(self._coverage, leaf.field, "where.field", self._hint(operator))
        if isinstance(operator, Match):
            return self._match(leaf, operator, use)
        if isinstance(operator, Exists):
            return self._exists(leaf, operator, use)
        types = _first_set(operator, use)
        if types is None and leaf.field not in VIRTUAL_FIELDS:
            raise _no_index(leaf.field, operator)
        return self._indexed(leaf, operator, use, types or ())

    def _indexed(
        self, leaf: LeafFilter, operator: QueryOperator, use: FieldUse | None, types: Sequence[str]
    ) -> LeafNode:
        value_type = _value_type(leaf.field, use)
        indexes = [one for one in self._snapshot.indexes(leaf.field) if one.type.name in types]
        predicates: list[Predicate] = []
        sources: list[Source] = []
        for group in _groups(indexes, types):
            options = {one.type.name: one.options for one in group}
            predicate = _predicate(leaf, operator, value_type, options)
            predicates.append(predicate)
            sources.append(_source(predicate, group))
        if not predicates:
            predicates.append(_predicate(leaf, operator, value_type, {}))
        uncovered = self._uncovered(leaf.field, use, sources)
        if uncovered is not None:
            for one in indexes:
                if one.untaken:
                    uncovered = uncovered | (one.untaken & self._scope.numbers)
        node = LeafNode(
            leaf.field,
            leaf.op,
            predicates,
            sources if uncovered is not None else (),
            uncovered=uncovered,
            answers=uncovered is not None,
        )
        node.estimate = self._estimate(node)
        return node

    def _estimate(self, node: LeafNode) -> int:
        if not node.answers:
            return self._total
        total = len(node.uncovered or ())
        for source in node.sources:
            for readers in source.both:
                predicate = source.predicate
                count = count_of(node.operator, predicate, predicate.estimate(readers))
                if count is None:
                    return self._total
                total += count
        node.reach = total
        return min(total, self._total)

    def _uncovered(self, field: str, use: FieldUse | None, sources: Sequence[Source]) -> BitMap | None:
        """Documents that have a field and that no source knows; None: nobody can tell, so test them all."""
        from pyroaring import BitMap

        if not self._snapshot.indexed or use is None or (not sources and field in VIRTUAL_FIELDS):
            return None
        if use.everywhere and sources:
            return BitMap()
        present = self._scope.numbers if field in VIRTUAL_FIELDS else self._present(field)
        covered = [_documents(readers) for source in sources for readers in source.both]
        if present is None or any(one is None for one in covered):
            return None
        if any(source.tails is not None for source in sources):
            # What was not flushed is searched in memory, and is there where this index is asked for alone.
            present = present | self._unflushed(field)
        return present - BitMap.union(BitMap(), *(one for one in covered if one is not None))

    def _unflushed(self, field: str) -> BitMap:
        from pyroaring import BitMap

        snapshot = self._snapshot
        return BitMap([one.id for one in snapshot.tail() if snapshot.values(one, field)])

    def _present(self, field: str) -> BitMap | None:
        """The flushed documents that have a field; None where no index tells."""
        from pyroaring import BitMap

        indexes = self._snapshot.indexes(field)
        for one in indexes:
            if one.type.name == PRESENCE:
                present: BitMap = one.reader.postings(presence_term(field))
                return present
        if field in VIRTUAL_FIELDS:
            return None
        found = [_documents({one.type.name: one.reader}) for one in indexes]
        if any(one is None for one in found):
            return None
        return BitMap.union(BitMap(), *(one for one in found if one is not None))

    def _exists(self, leaf: LeafFilter, operator: Exists, use: FieldUse | None) -> LeafNode:
        predicate = operator.compile(Leaf(leaf.field, leaf.op, leaf.value))
        assert isinstance(predicate, ExistsPredicate), "its own"
        present: BitMap | None = None
        if self._snapshot.indexed and (use is not None or leaf.field in VIRTUAL_FIELDS):
            present = self._present(leaf.field)
        node = PresenceNode(leaf.field, predicate, present)
        count = self._total if present is None else len(present & self._scope.numbers)
        node.estimate = count if predicate.wanted or present is None else self._total - count
        return node

    def _match(self, leaf: LeafFilter, operator: Match, use: FieldUse | None) -> Node:
        if not isinstance(leaf.value, str):
            raise InvalidInput("The value of 'match' is a text.", field="where.value")
        children: list[Node] = []
        for name in operator.parts:
            part = self._operators.get(name)
            if part is None:
                continue
            types = _first_set(part, use)
            if types is None and leaf.field not in VIRTUAL_FIELDS:
                continue
            options = {key: value for key, value in leaf.options.items() if key in part.options}
            one = LeafFilter(leaf.field, name, leaf.value, True, options)
            children.append(self._indexed(one, part, use, types or ()))
        if not children:
            raise _no_index(leaf.field, operator)
        node = OrNode(children, "match")
        node.estimate = min(self._total, sum(child.estimate for child in children))
        return node

    def _hint(self, operator: QueryOperator) -> str:
        first = operator.index_types[0] if operator.index_types else ()
        return " and ".join(first) or "exact"


def require_field(coverage: Coverage, name: str, where: str, index_type: str = "exact") -> FieldUse | None:
    """Returns what is indexed of a field; None of a virtual field that no index knows."""
    use = coverage.fields.get(name)
    if use is not None or name in VIRTUAL_FIELDS:
        return use
    if name.startswith("@"):
        raise InvalidInput(
            f"There is no virtual field {name!r} here.", field=where, fields=sorted(VIRTUAL_FIELDS)
        )
    raise InvalidInput(
        f"No index has the field {name!r}: add it to indexes.json with the type {index_type}.",
        field=name,
        index_type=index_type,
    )


def _check_members(leaf: LeafFilter, operator: QueryOperator) -> None:
    if operator.needs_value and not leaf.has_value:
        raise InvalidInput(f"The operator {leaf.op!r} needs a value.", field="where.value")
    for name in leaf.options:
        if name not in operator.options:
            raise InvalidInput(
                f"The operator {leaf.op!r} takes no member {name!r}.",
                field=f"where.{name[:100]}",
                members=sorted(operator.options),
            )


def _first_set(operator: QueryOperator, use: FieldUse | None) -> tuple[str, ...] | None:
    types = frozenset() if use is None else use.index_types
    return next((one for one in operator.index_types if types.issuperset(one)), None)


def _no_index(field: str, operator: QueryOperator) -> InvalidInput:
    wanted = [" and ".join(types) for types in operator.index_types]
    types = " or ".join(wanted)
    return InvalidInput(
        f"The operator {operator.name!r} on the field {field!r} needs an index of the type {types}: add it "
        "to the field in indexes.json.",
        field=field,
        operator=operator.name,
        index_type=wanted[0] if wanted else None,
    )


def _value_type(field: str, use: FieldUse | None) -> str:
    if field in VIRTUAL_FIELDS:
        return VIRTUAL_FIELDS[field]
    if use is not None and len(use.value_types) == 1:
        return next(iter(use.value_types))
    return "auto"


def _groups(indexes: Sequence[FieldIndex], types: Sequence[str]) -> Iterator[tuple[FieldIndex, ...]]:
    """The indexes as sets that have each type once."""
    if not types:
        return
    yield from product(*([one for one in indexes if one.type.name == name] for name in types))


def _predicate(
    leaf: LeafFilter,
    operator: QueryOperator,
    value_type: str,
    index_options: Mapping[str, Mapping[str, Any]],
) -> Predicate:
    value, options = leaf.value, leaf.options
    if value_type == "timestamp":
        value = _as_time(value)
        options = {name: _as_time(one) for name, one in options.items()}
    made = operator.compile(Leaf(leaf.field, leaf.op, value, options, value_type, index_options))
    return predicate_of(leaf.op, operator, made)


def _as_time(value: Any) -> Any:
    """A time as people write it in milliseconds; anything else as it is."""
    if isinstance(value, list):
        return [_as_time(one) for one in value]
    if not isinstance(value, str):
        return value
    try:
        return parse_time(value)
    except InvalidInput:
        return value


def _source(predicate: Predicate, group: Sequence[FieldIndex]) -> Source:
    readers = {one.type.name: one.reader for one in group}
    tails = None
    if any(one.tail is not None for one in group):
        tails = {one.type.name: one.tail if one.tail is not None else one.reader for one in group}
    return Source(predicate, readers, tails)


def _documents(readers: Mapping[str, Any]) -> BitMap | None:
    """The documents that all of some readers know; None where one can't tell."""
    total: BitMap | None = None
    for reader in readers.values():
        known = getattr(reader, "documents", None)
        found = None if known is None else known()
        if found is None:
            return None
        total = found if total is None else total & found
    return total
