"""What the words of a text are: one answer for the index, for what no flush has taken in, and for a test.

Words are found by the analyzers of tantivy, called from here and by the index alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tantivy import Filter, PreTokenizedString, TextAnalyzer, TextAnalyzerBuilder, Tokenizer
from tantivy import Token as LibraryToken

from svc.errors import InvalidInput

__all__ = [
    "DEFAULT_OPTIONS",
    "LANGUAGES",
    "TOKENIZERS",
    "VALUE_GAP",
    "Analysis",
    "Word",
    "analysis_of",
    "normalize",
]

LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish",
)  # fmt: skip
"""Those that words are reduced to stems in."""

WITHOUT_STOP_WORDS = frozenset({"arabic", "greek", "romanian", "tamil", "turkish"})
"""Languages that the library has no list of stop words of."""

TOKENIZERS = ("words", "whitespace", "cjk")

DEFAULT_OPTIONS: Mapping[str, Any] = {"language": None, "tokenizer": "words", "stop_words": False}

VALUE_GAP = 17
"""Places between the last word of a value and the first of the next, so that no phrase reaches over."""

_MAXIMUM_STOP_WORDS = 1_000
_LONGEST_WORD = 200
"""Bytes. What is longer is no word: encoded data, for example. It is left out."""

_LONG = re.compile(r"\S{50}")
"""What might be longer than the longest word, in bytes."""

_CJK = re.compile(
    "["
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3031-\u3035\u303b\u3040-\u30ff\u3100-\u318f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
    "]+"
)


class Word(NamedTuple):
    """One word of a text.

    Attributes:
        text: as the index has it: folded, and a stem where a language says so.
        position: its place among the words; stop words leave gaps.
        start: first character in the text that was given.
        end: behind its last character.
    """

    text: str
    position: int
    start: int
    end: int


class Analysis:
    """The words of texts, by the options of one index."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = dict(options)
        self.language: str | None = options["language"]
        self.cjk = options["tokenizer"] == "cjk"
        self.analyzer = _analyzer(options)
        self._has_gaps = self.cjk or bool(options["stop_words"])
        self._plain = _analyzer({**options, "language": None, "stop_words": False})

    def words(self, text: str) -> list[Word]:
        """Returns the words of a text, in order.

        With the tokenizer ``cjk``, a run of a script without spaces gives its pairs of characters, and its
        last character.
        """
        clean, places = self._clean(text)
        words = self._words_of(clean, self.analyzer)
        if places is None:
            return words
        return [word._replace(start=places[word.start], end=places[word.end]) for word in words]

    def words_together(self, text: str) -> list[str] | None:
        """Returns the words of a text without their places; None where there may be gaps between them."""
        if self._has_gaps or _LONG.search(text) is not None:
            return None
        found: list[str] = self.analyzer.analyze(self._clean(text)[0])
        return found

    def asked_words(self, text: str, *, plain: bool = False) -> list[Word]:
        """Returns the words that a text must have to hold those of this one, one behind the other.

        They are those of ``words`` without the last character of a run, which the pair before it has already.

        ``plain`` is without stems and stop words: what a prefix is made of.
        """
        return self._words_of(self._clean(text)[0], self._plain if plain else self.analyzer, asking=True)

    def is_character(self, text: str) -> bool:
        """Whether a word is a single character of a run: one that pairs begin with."""
        return self.cjk and len(text) == 1 and _CJK.match(text) is not None

    def ends_in_run(self, text: str) -> bool:
        """Whether the end of a text is that of a run: it has no beginning of a word at its end."""
        return self.cjk and text != "" and _CJK.match(text[-1]) is not None

    def prepared(self, text: str) -> str | PreTokenizedString:
        """Returns a text as the index takes it: it finds the words itself, or they are given."""
        clean, _ = self._clean(text)
        if not self.cjk or _CJK.search(clean) is None:
            return clean
        words = self._words_of(clean, self.analyzer)
        tokens = [LibraryToken(word.text, word.position, word.start, word.end) for word in words]
        return PreTokenizedString(clean, tokens)

    def _clean(self, text: str) -> tuple[str, Sequence[int] | None]:
        if self.language == "turkish":
            # There the small form of I has no dot.
            text = _DOTLESS.sub("\u0131", text)
        return _clean(text)

    def _words_of(self, text: str, analyzer: TextAnalyzer, *, asking: bool = False) -> list[Word]:
        if not self.cjk:
            return _analyzed(text, analyzer)
        words: list[Word] = []
        position = 0
        for start, end, together in _runs(text):
            if together:
                last = end - 1 if asking and end - start > 1 else end
                words += _pairs(text, start, last, end, position)
                position += end - start
            else:
                found = _analyzed(text[start:end], analyzer)
                words += [
                    Word(word.text, position + word.position, start + word.start, start + word.end)
                    for word in found
                ]
                position += found[-1].position + 1 if found else 0
        return words


def _analyzed(text: str, analyzer: TextAnalyzer) -> list[Word]:
    return [
        Word(token.text, token.position, token.char_offset_from, token.char_offset_to)
        for token in analyzer.pre_tokenize(text).tokens
    ]


def _runs(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yields (start, end, whether its script has no spaces)."""
    behind = 0
    for run in _CJK.finditer(text):
        if run.start() > behind:
            yield behind, run.start(), False
        yield run.start(), run.end(), True
        behind = run.end()
    if behind < len(text):
        yield behind, len(text), False


def _pairs(text: str, start: int, last: int, end: int, position: int) -> Iterator[Word]:
    """Yields the pairs of a run, and its last character, so that a single one is the beginning of a word."""
    for place in range(start, last):
        behind = min(place + 2, end)
        yield Word(text[place:behind], position + place - start, place, behind)


_UNSEEN = "\u00ad\u034f\u061c\u0640\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
"""What nobody sees: soft hyphens, spaces of no width, marks of direction, selectors of forms."""
_SHAPES = "\ufb1d-\ufdff\ufe70-\ufefc"
"""Hebrew and Arabic letters in the form that they have in print, as texts of PDF have them."""
_PRINTED = re.compile(f"[{_SHAPES}\\u00b5\\u03d0-\\u03d6\\u03f0-\\u03f5]")
_UNSEEN_ONE = re.compile(f"[{_UNSEEN}]")
_FOLDED = re.compile(
    f"[{_UNSEEN}{_SHAPES}\\u00b5\\u0130\\u0370-\\u03ff\\u0400\\u0401\\u040d\\u0450\\u0451\\u045d\\u0590-\\u06ff"
    "\\u1f00-\\u1fff]|[\\u0400-\\u04ff][\\u0300\\u0301]"
)
_USUAL_MARKS = 8
_DOTLESS = re.compile("I(?!\u0307)")
_CYRILLIC = {
    0x0401: "\u0415",
    0x0451: "\u0435",
    0x0400: "\u0415",
    0x0450: "\u0435",
    0x040D: "\u0418",
    0x045D: "\u0438",
    0x0300: "",
    0x0301: "",
}

# -- characters ------------------------------------------------------------------------------------


def _clean(text: str) -> tuple[str, Sequence[int] | None]:
    """Returns a text with composed characters and no lone surrogates, and where each character came from.

    What the library leaves alone is folded here: accents and final forms of four other scripts.
    What nobody sees (a soft hyphen, a space of no width) is left out, so that it ends no word.

    The places are None where nothing moved; they have one more, the end.
    """
    if text.isascii():
        return text, None
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    if unicodedata.is_normalized("NFC", text) and _FOLDED.search(text) is None:
        return text, None
    parts: list[str] = []
    places: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and _joins(text[end]):
            end += 1
        # What people write has few different ones; what they don't is not kept.
        fold = _folded_before if end - start <= _USUAL_MARKS else _folded
        composed = fold(text[start:end])
        parts.append(composed)
        places += [start] * len(composed)
        start = end
    places.append(len(text))
    return "".join(parts), places


def _folded(character: str) -> str:
    """A character with its marks, composed, and without what makes no difference."""
    character = unicodedata.normalize("NFC", character)
    if _FOLDED.search(character) is None:
        return character
    if _UNSEEN_ONE.match(character):
        return character[1:]
    if character[0] == "\u0130":
        return "I"  # Its small form would be two characters.
    if "\u0400" <= character[0] <= "\u04ff":
        # The marks of other letters, such as that of the short i, make letters of their own.
        return character.translate(_CYRILLIC)
    # Letters that stand for others as in print, such as those of formulas, are those.
    marked = unicodedata.normalize("NFKD" if _PRINTED.match(character) else "NFD", character)
    return "".join(one for one in marked if unicodedata.category(one) != "Mn").casefold()


_folded_before = lru_cache(maxsize=4096)(_folded)


def _joins(character: str) -> bool:
    """Whether a character may become one with that before it: a mark, or a later part of a Korean one."""
    return unicodedata.combining(character) != 0 or "\u1160" <= character <= "\u11ff"


# -- options ---------------------------------------------------------------------------------------


def normalize(options: Mapping[str, Any]) -> dict[str, Any]:
    """Checks ``language``, ``tokenizer`` and ``stop_words``, and fills in the defaults.

    Raises:
        InvalidInput: one is not as it should be; ``field`` names it.
    """
    language = options.get("language")
    if language is not None and language not in LANGUAGES:
        raise InvalidInput(
            f"The language of a full-text index is one of {', '.join(LANGUAGES)}, or null.", field="language"
        )
    tokenizer = options.get("tokenizer", "words")
    if tokenizer not in TOKENIZERS:
        raise InvalidInput(
            f"The tokenizer of a full-text index is one of {', '.join(TOKENIZERS)}.", field="tokenizer"
        )
    stop_words = _stop_words(options.get("stop_words", False), language)
    return {"language": language, "tokenizer": tokenizer, "stop_words": stop_words}


def _stop_words(given: Any, language: str | None) -> bool | list[str]:
    if given is None or given is False:
        return False
    if given is True:
        if language is None or language in WITHOUT_STOP_WORDS:
            known = ", ".join(name for name in LANGUAGES if name not in WITHOUT_STOP_WORDS)
            raise InvalidInput(
                f"Stop words are known of these languages: {known}; else give a list.", field="stop_words"
            )
        return True
    if (
        not isinstance(given, list)
        or len(given) > _MAXIMUM_STOP_WORDS
        or not all(isinstance(word, str) and 0 < len(word) <= _LONGEST_WORD for word in given)
    ):
        raise InvalidInput(
            f"Stop words are true, false, or a list of at most {_MAXIMUM_STOP_WORDS} words.",
            field="stop_words",
        )
    return sorted({_clean(word)[0].lower() for word in given})


def _analyzer(options: Mapping[str, Any]) -> TextAnalyzer:
    tokenizer = Tokenizer.regex(r"\S+") if options["tokenizer"] == "whitespace" else Tokenizer.simple()
    language: str | None = options["language"]
    filters = [Filter.remove_long(_LONGEST_WORD), Filter.lowercase()]
    stop_words = options["stop_words"]
    if stop_words is True and language is not None:
        filters.append(Filter.stopword(language))
    elif stop_words:
        filters.append(Filter.custom_stopword(stop_words))
    # The stems of other languages than English need their accents; without a stem there is no difference.
    if language in (None, "english"):
        filters.append(Filter.ascii_fold())
    if language is not None:
        filters.append(Filter.stemmer(language))
    if language not in (None, "english"):
        filters.append(Filter.ascii_fold())
    builder = TextAnalyzerBuilder(tokenizer)
    for one in filters:
        builder = builder.filter(one)
    return builder.build()


@lru_cache(maxsize=64)
def _cached(language: str | None, tokenizer: str, stop_words: bool | tuple[str, ...]) -> Analysis:
    words = stop_words if isinstance(stop_words, bool) else list(stop_words)
    return Analysis({"language": language, "tokenizer": tokenizer, "stop_words": words})


def analysis_of(options: Mapping[str, Any]) -> Analysis:
    """Returns what finds the words by the options of an index; made once."""
    known = {**DEFAULT_OPTIONS, **options}
    words = known["stop_words"]
    return _cached(known["language"], known["tokenizer"], tuple(words) if isinstance(words, list) else words)
