"""Case and accents make no difference in any script that has them, and what nobody sees ends no word."""

from __future__ import annotations

import pytest
from svc_index_fulltext.analysis import Analysis
from svc_index_fulltext.index_type import FulltextIndexType


def words(text: str, **options: object) -> list[str]:
    return [word.text for word in Analysis(FulltextIndexType().normalize(options)).words(text)]


@pytest.mark.parametrize("language", [None, "greek", "russian", "arabic"])
@pytest.mark.parametrize(
    ("written", "asked"),
    [
        (
            "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3",
            "\u03bf\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2",
        ),
        (
            "\u1f48\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2",
            "\u03bf\u03b4\u03c5\u03c3\u03c3\u03b5\u03c5\u03c3",
        ),
        ("\u0401\u043b\u043a\u0430", "\u0435\u043b\u043a\u0430"),
        ("\u0437\u0430\u0301\u043c\u043e\u043a", "\u0437\u0430\u043c\u043e\u043a"),
        ("\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627", "\u0645\u0631\u062d\u0628\u0627"),
        ("\u0645\u0640\u0640\u0631\u062d\u0628\u0627", "\u0645\u0631\u062d\u0628\u0627"),
        ("Donau\u00addampf\u200bschiff", "donaudampfschiff"),
        ("\u00dcberall", "uberall"),
        ("\ufee3\ufea4\ufee4\ufeaa", "\u0645\u062d\u0645\u062f"),
        ("\ufdf2", "\u0627\u0644\u0644\u0647"),
        ("\ufb2e", "\u05d0"),
        ("\u0130stanbul", "istanbul"),
        ("I\u0307stanbul", "istanbul"),
        ("a\u200eb\u061cc\ufe0fd\u034fe", "abcde"),
        ("\u202aabc\u202c", "abc"),
        ("5\u00b5m", "5\u03bcm"),
        ("\u1fb3", "\u03b1"),
    ],
)
def test_two_ways_to_write_a_word_are_one(written: str, asked: str, language: str | None) -> None:
    assert words(written, language=language) == words(asked, language=language)
    assert len(words(asked, language=language)) == 1


def test_letters_of_their_own_stay_themselves() -> None:
    assert words("\u043c\u043e\u0439") != words("\u043c\u043e\u0438")


def test_a_word_stands_where_it_was_written() -> None:
    text = "x Donau\u00addampf \u1f48\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2!"
    found = Analysis(FulltextIndexType().normalize({})).words(text)
    assert [text[word.start : word.end] for word in found] == ["x", "Donau\u00addampf", text[-9:-1]]


def test_the_small_form_of_a_turkish_i_depends_on_its_dot() -> None:
    for written, asked in (("KIZLARIN", "k\u0131zlar\u0131n"), ("\u0130ST\u0130NYE", "istinye")):
        assert words(written, language="turkish") == words(asked, language="turkish")


def test_a_letter_that_stands_for_several_has_one_place() -> None:
    text = "x \ufdf2 y"
    found = Analysis(FulltextIndexType().normalize({})).words(text)
    assert [text[word.start : word.end] for word in found] == ["x", "\ufdf2", "y"]
