"""The command line: ``svc``, its kernel commands, and what plugins add to it.

Commands print text or JSON, and their exit code says what went wrong; only what one needs is imported.
"""

from __future__ import annotations

from svc.clock import require_clock

require_clock()

from svc.cli.lazy_command import LazyCommand  # noqa: E402
from svc.cli.opening import (  # noqa: E402
    declared_system_paths,
    extensions_of,
    open_database,
)
from svc.cli.options import database_option, json_option  # noqa: E402
from svc.cli.output import (  # noqa: E402
    counted,
    print_json,
    print_result,
    print_table,
    readable_bytes,
    terminal_text,
    time_text,
)
from svc.cli.program import main  # noqa: E402
from svc.cli.progress import progress_bar  # noqa: E402
from svc.cli.root_key import require_root_key, root_key_options  # noqa: E402
from svc.cli.source import Service, Source, source_options  # noqa: E402
from svc.cli.user_names import UserNames  # noqa: E402
from svc.cli.words import say_in_shell_words  # noqa: E402

__all__ = [
    "LazyCommand",
    "Service",
    "Source",
    "UserNames",
    "counted",
    "database_option",
    "declared_system_paths",
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
]
