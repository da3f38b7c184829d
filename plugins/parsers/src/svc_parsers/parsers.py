"""All parsers of the plugin. What two of them could read is read by the one that comes first."""

from __future__ import annotations

from svc_query.api import Parser

from svc_parsers.html_pages import HtmlParser
from svc_parsers.images import ImageParser
from svc_parsers.json_documents import JsonLinesParser, JsonParser
from svc_parsers.mail import MailboxParser, MailParser
from svc_parsers.markdown import MarkdownParser
from svc_parsers.media import AudioParser, VideoParser
from svc_parsers.office import PresentationParser, WordParser
from svc_parsers.open_document import OpenDocumentParser
from svc_parsers.pdf import PdfParser
from svc_parsers.plain_text import TextParser
from svc_parsers.rich_text import RtfParser
from svc_parsers.spreadsheets import SpreadsheetParser
from svc_parsers.tables import CsvParser
from svc_parsers.toml_documents import TomlParser
from svc_parsers.xml_documents import XmlParser
from svc_parsers.yaml_documents import YamlParser

__all__ = ["PARSERS"]

PARSERS: tuple[type[Parser], ...] = (
    JsonParser,
    JsonLinesParser,
    YamlParser,
    TomlParser,
    CsvParser,
    MarkdownParser,
    HtmlParser,
    XmlParser,
    PdfParser,
    ImageParser,
    AudioParser,
    VideoParser,
    MailParser,
    MailboxParser,
    SpreadsheetParser,
    WordParser,
    PresentationParser,
    OpenDocumentParser,
    RtfParser,
    TextParser,
)
