"""``svc query``, ``svc search`` and ``svc index``, against a database file or a server."""

from __future__ import annotations

from svc_query.commands.index_commands import index
from svc_query.commands.query_command import query
from svc_query.commands.search_command import search

__all__ = ["index", "query", "search"]
