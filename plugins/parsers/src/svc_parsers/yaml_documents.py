"""YAML."""

from __future__ import annotations

from typing import Any, BinaryIO

from svc_query.api import InPart, Parser, ParserInput

from svc_parsers.encodings import read_text

__all__ = ["YamlParser"]


class YamlParser(Parser):
    """The document as it is; a list of documents where a file has several."""

    name = "yaml"
    content_types = frozenset(
        {"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "application/*+yaml"}
    )
    extensions = frozenset({"yaml", "yml"})

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns the document; null for an empty file."""
        from svc_parsers.safe_yaml import load_yaml

        found = read_text(content, source)
        loaded = load_yaml(found.text)
        documents = loaded.documents
        document = documents if len(documents) > 1 else next(iter(documents), None)
        return found.told(InPart(document, loaded.lacks) if loaded.lacks else document)
