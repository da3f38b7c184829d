"""Makes documents of files: in child processes that may hang or crash, or in place where that is safe.

``ParserPool`` has the children, ``parse_in_process`` does without, ``choose_parser`` says who reads a file.
"""

from __future__ import annotations

from svc_query.parsing.choosing import choose_parser
from svc_query.parsing.documents import (
    MAXIMUM_DEPTH,
    MAXIMUM_DOCUMENT_VALUES,
    decode_document,
    encode_document,
)
from svc_query.parsing.in_place import parse_in_process
from svc_query.parsing.pool import ParserPool
from svc_query.parsing.results import ParseResult

__all__ = [
    "MAXIMUM_DEPTH",
    "MAXIMUM_DOCUMENT_VALUES",
    "ParseResult",
    "ParserPool",
    "choose_parser",
    "decode_document",
    "encode_document",
    "parse_in_process",
]
