"""Everything of svc that a plugin may use: one module, one list.

A name is imported from its home when it is first used, so that a plugin pays only for what it uses.
``plugin.pyi`` beside this file says the same to type checkers; errors are in ``svc.errors``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

HOMES: dict[str, tuple[str, ...]] = {
    "svc.cli": (
        "DEFAULT_DATABASE",
        "LazyCommand",
        "Source",
        "counted",
        "database_option",
        "declared_system_paths",
        "extensions_of",
        "is_server_url",
        "json_option",
        "open_database",
        "print_json",
        "print_table",
        "require_root_key",
        "root_key_options",
        "say_in_shell_words",
        "source_options",
        "terminal_text",
        "time_text",
    ),
    "svc.database": (
        "BatchView",
        "Commit",
        "CommitResult",
        "CommitStep",
        "Condition",
        "Database",
        "DatabaseTotals",
        "EMPTY_ROOT",
        "OperationHandle",
        "OperationResult",
        "PathChange",
        "StoredContent",
        "Transaction",
        "TransactionRecord",
        "Version",
        "View",
        "ViewBatch",
        "ViewReader",
        "ViewStorage",
        "attempt",
        "parse_time",
        "pause",
        "reference_name",
        "reference_path",
        "run_blocking",
    ),
    "svc.globs": (
        "PathGlob",
        "segment_expression",
    ),
    "svc.hashing": (
        "HASH_SIZE",
        "Hash",
        "ObjectKind",
        "content_hasher",
        "hash_content",
        "hash_object",
        "parse_hash",
    ),
    "svc.lines": ("matching_blocks",),
    "svc.paths": (
        "MAXIMUM_PATH_BYTES",
        "Path",
        "SYSTEM_NAMES",
        "format_path",
        "is_system_path",
        "parse_path",
    ),
    "svc.pipeline": (
        "BodyStream",
        "Limits",
        "PIECE_SIZE",
        "RequestContext",
        "SvcRequest",
        "body_stream",
        "conditions_of",
        "context_of",
        "effective_permissions",
        "encode_json",
        "errors_as_page",
        "flags_of_mask",
        "format_http_date",
        "has_body",
        "hides_denials",
        "is_unrestricted_root",
        "json_command",
        "mark_immutable",
        "not_modified",
        "parse_flags",
        "path_not_found",
        "permitted",
        "public",
        "query_flag",
        "query_number",
        "query_text",
        "quote_etag",
        "read_json",
        "requires",
        "requires_any",
        "requires_identity",
        "requires_in_body",
        "requires_root",
        "send_content",
        "send_json",
        "send_json_items",
        "send_stream",
        "set_fields",
        "vary_by",
    ),
    "svc.plugins": (
        "API_VERSION",
        "AuthContext",
        "AuthMode",
        "BackgroundJob",
        "BackupRule",
        "CommandRegistry",
        "Credentials",
        "Extension",
        "Family",
        "HealthCheck",
        "HealthReport",
        "HealthStatus",
        "Identity",
        "JobContext",
        "JobRegistry",
        "LogPlace",
        "LogStorage",
        "NamedRegistry",
        "Operation",
        "PluginContext",
        "PluginDescriptor",
        "ROOT_IDENTITY",
        "ROOT_USER_ID",
        "Registered",
        "Rights",
        "RouteRegistry",
        "ScopedRule",
        "Secret",
        "StartOption",
        "StorageBackend",
        "SystemPath",
        "SystemPaths",
        "hookimpl",
        "hookspec",
        "stored_settings",
        "validate_settings",
    ),
    "svc.tree": (
        "Change",
        "Entry",
        "EntryKind",
        "MergeConflict",
        "MergeStrategy",
        "NO_TOTALS",
        "Node",
        "NodeReader",
        "Totals",
        "decode_node",
        "differences",
        "empty_payload",
        "merge",
        "totals",
    ),
}
"""The names by the package that they are of."""

_HOME_OF = {name: home for home, names in HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
