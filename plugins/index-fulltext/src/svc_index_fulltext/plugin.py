"""The hooks of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import NamedRegistry, hookimpl

if TYPE_CHECKING:
    from svc_query.api import IndexType, QueryOperator

__all__ = ["svc_register_index_types", "svc_register_query_operators"]


@hookimpl
def svc_register_index_types(index_types: NamedRegistry[IndexType]) -> None:
    """Adds the index type ``fulltext``."""
    from svc_index_fulltext.index_type import FulltextIndexType

    index_types.add(FulltextIndexType())


@hookimpl
def svc_register_query_operators(query_operators: NamedRegistry[QueryOperator]) -> None:
    """Adds the operator ``search``."""
    from svc_index_fulltext.operator import SearchOperator

    query_operators.add(SearchOperator())
