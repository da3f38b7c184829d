"""The hooks of the plugin: its index type and its operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_query.api import IndexType, QueryOperator

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_index_types", "svc_register_query_operators"]


@hookimpl
def svc_register_index_types(index_types: NamedRegistry[IndexType]) -> None:
    """Adds the index type ``phonetic``."""
    from svc_index_phonetic.index import PhoneticIndex

    index_types.add(PhoneticIndex())


@hookimpl
def svc_register_query_operators(query_operators: NamedRegistry[QueryOperator]) -> None:
    """Adds ``phonetic``."""
    from svc_index_phonetic.operators import PhoneticOperator

    query_operators.add(PhoneticOperator())
