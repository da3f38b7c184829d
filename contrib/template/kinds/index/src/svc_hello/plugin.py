"""The hooks of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_query.api import IndexType, QueryOperator

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_index_types", "svc_register_query_operators"]


@hookimpl
def svc_register_index_types(index_types: NamedRegistry[IndexType]) -> None:
    """Adds the index type ``initial``."""
    from svc_hello.initials import InitialIndexType

    index_types.add(InitialIndexType())


@hookimpl
def svc_register_query_operators(query_operators: NamedRegistry[QueryOperator]) -> None:
    """Adds the operator ``has_initial``."""
    from svc_hello.initials import HasInitial

    query_operators.add(HasInitial())
