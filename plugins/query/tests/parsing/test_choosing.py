"""Which parser reads a file: bytes that are in a coding are not of the type that they decode to."""

from __future__ import annotations

from svc_query.api import Parser
from svc_query.parsing import choose_parser


class Page(Parser):
    """Stands for any parser of pages."""

    name = "page"
    content_types = ("text/html",)
    extensions = ("html",)

    def parse(self, content: object, source: object) -> object:
        raise AssertionError("nothing is parsed here")


PARSERS = {"page": Page()}


def test_what_is_stored_in_a_coding_has_no_parser_whatever_its_type_or_name() -> None:
    assert choose_parser(PARSERS, "text/html; charset=utf-8", "a.html", None) is PARSERS["page"]
    for content_type in ("text/html; content-encoding=gzip", 'text/plain; content-encoding="gzip, br"'):
        assert choose_parser(PARSERS, content_type, "a.html", None) is None
        assert choose_parser(PARSERS, content_type, "a.html", "page") is None
