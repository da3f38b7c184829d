"""Parsing where the caller stands: for parsers that say they are fast, and sure not to hang or crash."""

from __future__ import annotations

import io

from svc_query.api import Parser, ParserInput
from svc_query.configuration import QueryConfiguration
from svc_query.parsing.documents import decode_checked, encode_in_part
from svc_query.parsing.results import ParseResult, describe_error, mebibytes, readable

__all__ = ["parse_in_process"]

_DEFAULTS = QueryConfiguration()


def parse_in_process(
    parser: Parser, content: bytes, source: ParserInput, configuration: QueryConfiguration = _DEFAULTS
) -> ParseResult:
    """Makes a document in this process. The limits of the document are those of a child process.

    There is no limit on time and memory, so the caller asks ``parser.in_process`` first and gives small
    files. Does not block.
    """
    if len(content) > configuration.parse_input:
        return ParseResult(failure=f"It is larger than {mebibytes(configuration.parse_input)}.")
    try:
        document = parser.parse(io.BytesIO(content), source)
        encoded = encode_in_part(document, configuration.parse_output)
        return ParseResult(
            decode_checked(encoded.document),
            part=readable(encoded.part) or None,
            guess=readable(encoded.guess) or None,
        )
    except Exception as error:  # noqa: BLE001
        return ParseResult(failure=describe_error(parser.name, error))
