"""The command line: ``svc``, its kernel commands, and what plugins add to it.

Words of a shell flow in; text or JSON on standard output, and an exit code that says what went wrong, flow
out. Only what a command needs is imported, when it runs.
"""

from __future__ import annotations

from svc.cli.lazy_command import LazyCommand
from svc.cli.opening import DEFAULT_DATABASE, open_database
from svc.cli.options import database_option, json_option
from svc.cli.output import print_json, terminal_text, time_text
from svc.cli.program import main
from svc.cli.root_key import require_root_key

__all__ = [
    "DEFAULT_DATABASE",
    "LazyCommand",
    "database_option",
    "json_option",
    "main",
    "open_database",
    "print_json",
    "require_root_key",
    "terminal_text",
    "time_text",
]
