"""The hooks of the plugin: its index type and its operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_query.api import IndexType, QueryOperator

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_index_types", "svc_register_query_operators"]


@hookimpl
def svc_register_index_types(index_types: NamedRegistry[IndexType]) -> None:
    """Adds the index type ``exact``."""
    from svc_index_exact.index import ExactIndex

    index_types.add(ExactIndex())


@hookimpl
def svc_register_query_operators(query_operators: NamedRegistry[QueryOperator]) -> None:
    """Adds equality, ranges, ``in`` and ``prefix``."""
    from svc_index_exact.operators import OPERATORS

    for operator in OPERATORS:
        query_operators.add(operator())
