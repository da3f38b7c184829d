"""``svc query``, ``svc search`` and ``svc index``, against a database file or a server."""

from __future__ import annotations

__all__ = ["COMMANDS"]

COMMANDS = {
    "query": ("svc_query.commands.query_command:query", "Finds files by what is in them."),
    "search": (
        "svc_query.commands.search_command:search",
        "Searches for words in everything that is indexed.",
    ),
    "index": (
        "svc_query.commands.index_commands:index",
        "Shows and makes the indexes that queries use.",
    ),
}
"""Where each command is, and its line in the help."""
