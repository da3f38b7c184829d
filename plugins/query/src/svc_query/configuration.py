"""The settings of the plugin in one database."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["QueryConfiguration"]

Seconds = Annotated[float, msgspec.Meta(ge=0.01, le=3600)]
Bytes = Annotated[int, msgspec.Meta(ge=1024, le=1 << 34)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class QueryConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the plugin.

    Attributes:
        wait_seconds: how long a query waits for the index to hold what was written before it; then 503.
        query_seconds: how long a query may take; then 503.
        default_limit: rows of an answer without ``limit``.
        maximum_limit: most rows of an answer.
        maximum_rows: rows that a query without an index, or one that must sort, looks at in all.
        scan_entries: entries that a query by walk looks at.
        parse_seconds: wall time of one parse in a child process.
        parse_memory: bytes of memory of a child process.
        parse_output: bytes of a document, encoded.
        parse_input: bytes of a file; a larger one is not parsed.
        parsers_at_once: child processes.
        maximum_values: values of one field of one document.
        maximum_text: characters of one value that are kept.
        maximum_fields: fields of one ``indexes.json``.
        maximum_indexes: indexes of the database: each field with each of its types, by their options.
        maximum_documents: files of the index; a directory that comes at once waits with what is beyond.
    """

    wait_seconds: Seconds = 5.0
    query_seconds: Seconds = 30.0
    default_limit: Count = 20
    maximum_limit: Count = 1_000
    maximum_rows: Count = 100_000
    scan_entries: Count = 100_000
    parse_seconds: Seconds = 10.0
    parse_memory: Bytes = 512 * 1024 * 1024
    parse_output: Bytes = 32 * 1024 * 1024
    parse_input: Bytes = 256 * 1024 * 1024
    parsers_at_once: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2
    maximum_values: Count = 1_000
    maximum_text: Count = 1_000_000
    maximum_fields: Count = 256
    maximum_indexes: Count = 1_000
    maximum_documents: Annotated[int, msgspec.Meta(ge=1, le=2_000_000_000)] = 20_000_000
