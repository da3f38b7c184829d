"""The hook of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_query.api import QueryOperator

    from svc.plugin import NamedRegistry

__all__ = ["svc_register_query_operators"]


@hookimpl
def svc_register_query_operators(query_operators: NamedRegistry[QueryOperator]) -> None:
    """Adds the operator ``shorter_than``."""
    from svc_hello.lengths import ShorterThan

    query_operators.add(ShorterThan())
