"""Files that can't be read to their end, or not all of which can: what is there is taken, and it is said."""

from __future__ import annotations

import base64
import io

import docx
import odfdo
import pytest
from made_files import FILES, pdf
from svc_query.api import ParserInput
from svc_query.parsing import ParserPool
from svc_query.parsing.documents import MAXIMUM_DOCUMENT_VALUES

from .conftest import BY_NAME, parse_here  # noqa: TID252


def test_a_line_that_is_still_being_written_costs_itself_alone() -> None:
    result = parse_here("a.jsonl", b'{"a": 1}\n{"a": 2}\n{"a": ')
    assert result.document == [{"a": 1}, {"a": 2}]
    assert "line 3" in result.part


def test_half_of_a_surrogate_pair_costs_itself_alone() -> None:
    result = parse_here("a.json", b'{"title": "x", "emoji": "\\ud83d"}')
    assert result.document == {"title": "x", "emoji": "?"}
    assert "surrogate" in result.part


def test_front_matter_that_is_no_yaml_is_taken_line_by_line() -> None:
    result = parse_here("a.md", b"---\ntitle: foo: bar\nyear: 1869\n---\n# Heading\ntext\n")
    assert result.document["title"] == "foo: bar"
    assert result.document["front_matter"]["year"] == "1869"
    assert result.document["text"].startswith("# Heading")
    assert "front matter" in result.part


def test_a_date_that_no_calendar_has_is_a_text() -> None:
    result = parse_here("a.yaml", b"title: x\ndate: 2026-02-30\n")
    assert (result.document, result.part) == ({"title": "x", "date": "2026-02-30"}, None)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_raw_bytes_of_headers_are_letters(encoding: str) -> None:
    mail = "From: Jörg <j@example.org>\nSubject: Grüße aus Köln\n\ntext\n".encode(encoding)
    assert parse_here("a.eml", mail).document["title"] == "Grüße aus Köln"


def test_of_more_values_than_a_document_may_have_the_first_are_taken() -> None:
    content = b'{"title": "x", "many": [' + b",".join([b"1"] * (MAXIMUM_DOCUMENT_VALUES + 10)) + b"]}"
    result = parse_here("a.json", content)
    assert result.document["title"] == "x"
    assert len(result.document["many"]) > MAXIMUM_DOCUMENT_VALUES // 2
    assert "the rest is left out" in result.part


def test_a_child_process_says_it_too(pool: ParserPool) -> None:
    content = b"---\ntitle: foo: bar\n---\ntext\n"
    result = pool.parse(BY_NAME["markdown"], content, ParserInput("a.md", None, len(content)))
    assert result.document["title"] == "foo: bar"
    assert "front matter" in result.part


def test_headers_footers_and_notes_of_word_are_text() -> None:
    document = docx.Document()
    document.add_paragraph("body")
    for section in (document.sections[0], document.add_section()):
        section.header.is_linked_to_previous = section.footer.is_linked_to_previous = False
        section.header.paragraphs[0].text = "Harbour office"
        section.footer.paragraphs[0].text = "page of the secretary"
    content = io.BytesIO()
    document.save(content)
    text = parse_here("a.docx", content.getvalue()).document["text"]
    assert text == "body\nHarbour office\npage of the secretary"


def test_headers_and_footers_of_opendocument_are_text() -> None:
    document = odfdo.Document("text")
    document.body.append(odfdo.Paragraph("body"))
    style = document.get_style("master-page", "Standard")
    style.set_page_header("Harbour office")
    style.set_page_footer("page of the secretary")
    content = io.BytesIO()
    document.save(content)
    text = parse_here("a.odt", content.getvalue()).document["text"]
    assert [line for line in text.split("\n") if line] == ["body", "Harbour office", "page of the secretary"]


def test_each_mail_of_a_mailbox_is_a_mail() -> None:
    mails = (
        b"From ann@example.org Wed May  1 12:30:00 2024\nSubject: One\nContent-Transfer-Encoding: base64\n\n"
        + base64.b64encode("Grüße".encode())
        + b"\n\nFrom bob Wed May  1 12:31:00 2024\r\nSubject: =?utf-8?q?Zw=C3=B6lf?=\r\n\r\n"
        b">From here on\nFrom here\n"
        b"\nFrom x Wed May  1 12:32:00 2024\nno headers\n"
    )
    result = parse_here("list.mbox", mails)
    assert [(mail["title"], mail["text"].strip()) for mail in result.document["messages"]] == [
        ("One", "Grüße"),
        ("Zwölf", "From here on\nFrom here"),
    ]
    assert "Grüße" in result.document["text"]
    assert "1 of its mails" in result.part
    assert parse_here("a.mbox", b"nothing").failure


def test_a_body_of_a_mail_in_raw_bytes_is_text() -> None:
    for head in (
        "",
        "Content-Type: text/plain; charset=nonsense\n",
        "Content-Type: text/plain; charset=ascii\n",
    ):
        mail = f"Subject: x\n{head}\nGrüße aus Köln".encode("cp1252")
        assert parse_here("a.eml", mail).document["text"] == "Grüße aus Köln"


def test_documents_of_yaml_before_a_torn_one_are_taken() -> None:
    result = parse_here("a.yaml", b"a: 1\n---\na: 2\n---\na: [1,\n")
    assert result.document == [{"a": 1}, {"a": 2}]
    assert "2 documents" in result.part


def test_a_torn_xml_file_has_its_text() -> None:
    result = parse_here("a.xml", b"<rss><item><title>War and Peace</title></item><item><title>Ann")
    assert result.document["text"] == "War and Peace\nAnn"
    assert "not well-formed" in result.part
    deep = b"<a>" * 200 + b"words" + b"</a>" * 200
    assert parse_here("a.xml", deep).document["text"] == "words"


def test_rows_before_what_is_too_much_are_taken() -> None:
    result = parse_here("a.csv", b"a,b\n" + b"1,2\n" * 150_000)
    assert len(result.document) == 99_999
    assert "200,000 cells" in result.part
    torn = parse_here("a.csv", b"a\n1\n" + b"x" * 11_000_000)
    assert torn.document == [{"a": "1"}]


def test_sheets_before_what_is_too_much_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc_parsers.spreadsheets.MAXIMUM_CELLS", 5)
    whole = FILES["books.xlsx"]()
    result = parse_here("books.xlsx", whole)
    assert sum(len(row) for sheet in result.document["sheets"] for row in sheet["rows"]) <= 5
    assert "more than 5 cells" in result.part


def test_a_torn_page_of_a_pdf_is_told() -> None:
    content = pdf(["War and Peace", "The second page"])
    result = parse_here(
        "a.pdf", content.replace(b"/Type /Page /Parent 2 0 R", b"/Type /Nope /Parent 2 0 ", 1)
    )
    assert "The second page" in result.document["text"]
    assert "torn" in result.part


@pytest.mark.parametrize("end", ["\0", "\0\0 ", "\x01", "\ufeff", "\u200b"])
def test_what_nobody_sees_at_the_ends_of_metadata_goes(end: str) -> None:
    title = ("\ufeff" + f"{end}A title{end}").encode("utf-16-be").hex()
    content = pdf(["x"], f"/Title <{title}>")
    assert parse_here("a.pdf", content).document["title"] == "A title"
    if end.isprintable() or end in "\ufeff\u200b":
        document = docx.Document()
        document.core_properties.title = f"A title{end}"
        saved = io.BytesIO()
        document.save(saved)
        assert parse_here("a.docx", saved.getvalue()).document["title"] == "A title"
