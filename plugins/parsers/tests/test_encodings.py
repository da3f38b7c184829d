# ruff: noqa: RUF001
"""Texts whose encoding nobody says: short and long ones, of fifteen encodings."""

from __future__ import annotations

import pytest
from svc_parsers.encodings import decode_text
from svc_query.api import ParserInput
from svc_query.parsing import parse_in_process

from .conftest import BY_NAME, parse_here  # noqa: TID252

SHORT = {
    "cp1252": [
        *("Köln", "Müller", "naïve café", "Straße 5 – 10 €", "São Paulo", "Ærø", "¿Qué tal, señor?", "l’été"),
        *("Name;Ort\r\nJörg;Düsseldorf\r\n", "Garçon", "Málaga", "“quoted”", "25 °C", "Å", "½ Pfund Äpfel"),
    ],
    "iso8859_15": ["Gehäuse für Österreich"],
    "cp1251": ["Привет, мир", "Москва"],
    "koi8_r": ["Привет, мир, как дела"],
    "cp1253": ["Καλημέρα κόσμε"],
    "cp1250": ["Zażółć gęślą jaźń"],
    "shift_jis": ["こんにちは世界"],
    "gb18030": ["这是我的文件"],
    "euc_kr": ["안녕하세요"],
}
LONG = {
    "cp1252": "Die Übergabe der Schlüssel für das Gebäude erfolgt zwölf Tage später in der Küche. ",
    "iso8859_1": "Le garçon a mangé une pêche à l'école, où il était très tôt arrivé cet été-là. ",
    "cp1251": "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. ",
    "koi8_r": "Все смешалось в доме Облонских. Жена узнала, что муж был в связи с бывшею гувернанткой. ",
    "cp1253": "Όλες οι ευτυχισμένες οικογένειες μοιάζουν μεταξύ τους, κάθε δυστυχισμένη με τον τρόπο της. ",
    "cp1250": "Všechny šťastné rodiny jsou si podobné, každá nešťastná rodina je nešťastná po svém způsobu. ",
    "cp1255": "כל המשפחות המאושרות דומות זו לזו, כל משפחה אומללה היא אומללה בדרכה שלה. ",
    "cp1256": "كل العائلات السعيدة تتشابه، لكن لكل عائلة تعيسة طريقتها الخاصة في التعاسة. ",
    "shift_jis": "幸福な家庭はすべて互いに似かよったものであり、不幸な家庭は不幸のおもむきが異なっている。",
    "euc_kr": "행복한 가정은 모두 비슷한 이유로 행복하지만 불행한 가정은 저마다의 이유로 불행하다. ",
    "gb18030": "幸福的家庭都是相似的，不幸的家庭各有各的不幸。奥布隆斯基家里一切都乱了。",
    "big5": "幸福的家庭都是相似的，不幸的家庭各有各的不幸。奧布隆斯基家裡一切都亂了。",
}
MARKED = ("utf-8-sig", "utf-16", "utf-32")


@pytest.mark.parametrize(
    ("encoding", "text"), [(name, text) for name, texts in SHORT.items() for text in texts]
)
def test_a_short_text_is_read_as_it_was_written(encoding: str, text: str) -> None:
    assert decode_text(text.encode(encoding)).text == text


@pytest.mark.parametrize(("encoding", "text"), LONG.items())
def test_a_long_text_is_read_as_it_was_written(encoding: str, text: str) -> None:
    assert decode_text((text * 8).encode(encoding)).text == text * 8


@pytest.mark.parametrize("encoding", [*MARKED, "utf-8"])
@pytest.mark.parametrize("text", ["Köln", "Привет", "日本語", "plain"])
def test_marks_and_utf_8_are_read_whatever_is_said(encoding: str, text: str) -> None:
    stated = None if text == "plain" else "iso-8859-1"
    assert decode_text(text.encode(encoding), stated).text == text


def test_what_is_said_counts_before_any_guess() -> None:
    assert decode_text("Łódź".encode("cp852"), "cp852").text == "Łódź"
    assert decode_text("日本".encode("iso2022_jp"), "ISO-2022-JP").text == "日本"


def test_no_short_text_is_taken_for_utf_16_without_a_mark() -> None:
    for text in ("Köln", "für", "Jörg;Müller;Größe"):
        assert decode_text(text.encode("cp1252")).encoding == "cp1252"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1251", "id;name\r\n1;Петр\r\n2;Ольга\r\n"),
        ("cp1251", "Name: Иванов Иван, order 17, delivered to the customer. " * 8),
        ("cp1251", "«Война и мир», 1869"),
        ("cp1251", "ИВАНОВ;Иван;Иванович\r\n" * 30),
        ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy"),
        ("cp1254", "İstanbul'da güneşli bir gün"),
        ("cp1254", "Şehir ışıkları, ağaçlar ve kuşlar. " * 10),
        ("iso8859_15", "10 € für Œuvre"),
        ("cp850", "Grüße aus der Konsole"),
        ("cp1252", "a to z, then åäö"),
        ("cp1252", "Reykjavík er höfuðborg Íslands, það er satt. " * 8),
        ("cp1252", "English text with a single naïve word in it. " * 20),
    ],
)
def test_few_letters_beyond_ascii_are_enough(encoding: str, text: str) -> None:
    found = decode_text(text.encode(encoding))
    assert found.text == text
    assert found.is_guess


def test_what_is_known_is_no_guess() -> None:
    assert not decode_text("Köln".encode()).is_guess
    assert not decode_text("Köln".encode("utf-16")).is_guess
    assert not decode_text("Köln".encode("cp1252"), "Windows-1252").is_guess
    assert decode_text("Köln".encode("cp1252"), "Windows-1252").encoding == "cp1252"


@pytest.mark.parametrize("stated", ["idna", "punycode", "unicode_escape", "zlib", "nonsense"])
def test_what_is_no_encoding_of_texts_counts_for_nothing(stated: str) -> None:
    # The time of two of these grows with the square of the length.
    assert decode_text(b"xn--" + b"b" * 200_000 + "ö".encode("cp1252"), stated).encoding == "cp1252"


@pytest.mark.parametrize(
    ("name", "content", "place", "guess"),
    [
        ("a.html", '<html><head><meta charset="windows-1251"><title>Мир</title>', "title", None),
        ("b.html", '<meta content="text/html; charset=windows-1251"><title>Мир</title>', "title", None),
        ("a.json", '{"title": "Привет, мир"}', "title", "cp1251"),
        ("a.toml", 'title = "Привет, мир"', "title", "cp1251"),
        ("a.yaml", "title: Привет, мир", "title", "cp1251"),
        ("a.md", "# Привет, мир\n", "title", "cp1251"),
        ("a.xml", "<a><title>Привет, мир</title></a>", "title", "cp1251"),
        ("b.xml", '<?xml version="1.0" encoding="windows-1251"?><a><title>Мир</title></a>', "title", None),
    ],
)  # fmt: skip
def test_each_format_is_read_in_the_encoding_of_the_file(
    name: str, content: str, place: str, guess: str | None
) -> None:
    result = parse_here(name, content.encode("cp1251"))
    assert result.document[place] in ("Мир", "Привет, мир")
    assert (result.guess, result.part) == (guess, None)


def test_lines_of_json_and_rows_may_be_in_another_encoding() -> None:
    assert parse_here("a.jsonl", '{"a": "Köln"}\n{"a": 1}'.encode("cp1252")).document == [
        {"a": "Köln"},
        {"a": 1},
    ]
    result = parse_here("a.csv", "Name;Ort\nJörg;Köln\n".encode("cp1252"))
    assert (result.document, result.guess) == ([{"Name": "Jörg", "Ort": "Köln"}], "cp1252")


def test_what_indexes_json_says_counts_where_the_media_type_says_nothing() -> None:
    content = "Łódź".encode("cp852")
    parser = BY_NAME["text"]
    for content_type, encoding, text in (
        ("text/plain", "cp852", "Łódź"),
        ("text/plain; charset=cp852", "cp1252", "Łódź"),
        ("text/plain", None, None),
    ):
        source = ParserInput("a.txt", content_type, len(content), encoding)
        result = parse_in_process(parser, content, source)
        assert (result.guess is None) == (text is not None)
        assert text is None or result.document["text"] == text


def test_few_nul_characters_are_left_out_and_many_are_no_text() -> None:
    result = parse_here("a.log", b"line\n" * 100 + bytes(4096))
    assert result.document["text"] == "line\n" * 100
    assert "NUL" in result.part
    assert "no text" in parse_here("a.log", bytes(range(256)) * 10).failure
    assert parse_here("a.log", bytes(100)).failure
