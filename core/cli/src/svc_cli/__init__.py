"""The command line: ``svc``, its own commands, and what commands of plugins use.

Commands print text or JSON, and their exit code says what went wrong; only what one needs is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from svc.clock import require_clock

require_clock()

if TYPE_CHECKING:
    from svc_cli.opening import extensions_of, open_database
    from svc_cli.options import database_option, json_option
    from svc_cli.output import (
        counted,
        print_json,
        print_result,
        print_table,
        readable_bytes,
        terminal_text,
        time_text,
    )
    from svc_cli.processes.state_file import view_places
    from svc_cli.program import main
    from svc_cli.progress import progress_bar
    from svc_cli.root_key import require_root_key, root_key_options
    from svc_cli.source import Service, Source, source_options
    from svc_cli.user_names import UserNames
    from svc_cli.words import say_in_shell_words

__all__ = [
    "Service",
    "Source",
    "UserNames",
    "counted",
    "database_option",
    "extensions_of",
    "json_option",
    "main",
    "open_database",
    "print_json",
    "print_result",
    "print_table",
    "progress_bar",
    "readable_bytes",
    "require_root_key",
    "root_key_options",
    "say_in_shell_words",
    "source_options",
    "terminal_text",
    "time_text",
    "view_places",
]

_HOMES = {
    "opening": ("extensions_of", "open_database"),
    "options": ("database_option", "json_option"),
    "output": (
        *("counted", "print_json", "print_result", "print_table"),
        *("readable_bytes", "terminal_text", "time_text"),
    ),
    "processes.state_file": ("view_places",),
    "program": ("main",),
    "progress": ("progress_bar",),
    "root_key": ("require_root_key", "root_key_options"),
    "source": ("Service", "Source", "source_options"),
    "user_names": ("UserNames",),
    "words": ("say_in_shell_words",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    # A worker that needs one of these imports no command line with it.
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"svc_cli.{home}"), name)
    globals()[name] = found
    return found
