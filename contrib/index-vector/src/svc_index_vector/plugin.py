"""The hooks that the plugin implements: each adds one thing to a registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import NamedRegistry, hookimpl

if TYPE_CHECKING:
    from svc_query.api import IndexType, QueryOperator

__all__ = ["svc_register_index_types", "svc_register_query_operators"]


@hookimpl
def svc_register_index_types(index_types: NamedRegistry[IndexType]) -> None:
    """Adds the index type ``vector``."""
    from svc_index_vector.index_type import VectorIndexType

    index_types.add(VectorIndexType())


@hookimpl
def svc_register_query_operators(query_operators: NamedRegistry[QueryOperator]) -> None:
    """Adds the operator ``nearest``."""
    from svc_index_vector.operator import NearestOperator

    query_operators.add(NearestOperator())
