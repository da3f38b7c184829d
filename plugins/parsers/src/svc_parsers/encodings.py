"""Text of bytes whose encoding nobody says for sure."""

from __future__ import annotations

import codecs
import re
import unicodedata
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple

from svc_query.api import Guessed, InPart, ParserInput

from svc.plugin import text_encoding

__all__ = ["Text", "decode_text", "read_text"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.:+-]{1,40})", re.IGNORECASE)
_SAMPLE = 64 * 1024
_TEXT_FOR_NUL = 100
"""Characters of text for each NUL; what has more of these is no text."""
_FREQUENT = frozenset("оеаинтсрвлкαοιετσνηυρי ולהמרתאיالميوتنرबの的는이가다을은안하세요고")
"""The letters that most words of some scripts are made of."""
_SYLLABLES = ("HIRAGANA", "KATAKANA")
_WESTERN = "cp1252"
"""What Excel and Notepad write where nobody has chosen anything."""
_FAR_BETTER = 0.2
_LONG = 256
"""Bytes from which on the languages that a guess finds say something."""
_ONE_BYTE = (
    *("cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp1250", "cp1254"),
    *("cp866", "mac_cyrillic", "iso8859_2", "iso8859_5"),
)
_OTHERS = (*_ONE_BYTE, "shift_jis", "euc_jp", "gb18030", "euc_kr", "big5")
_WORD = re.compile(r"[^\W\d_]{2,}")
_NORTHERN = frozenset("\u00e5\u00e4\u00f6\u00e6\u00f8\u00fc\u00df")
"""Letters behind the z of some alphabets, which stand together where one is listed."""
_QUOTES = frozenset("\u00ab\u00bb\u201e\u201c\u201d\u2018\u2019\u2013\u2014\u2026\u2116\u00a0")
_JUDGED = 16 * 1024
_CONSOLE = "cp850"
"""What programs in a console of Windows write."""
_CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x7f]")
_TURKISH = re.compile("\\B\u00fe|\u00fe\\b|\\b\u00fd\\w")
"""Letters of Icelandic where it never has them: they are others in Turkish."""
_NOT_TURKISH = frozenset("\u00e1\u00e9\u00ed\u00f3\u00fa\u00e6")


class Text(NamedTuple):
    """The text of a file, and the name of its encoding, which may be a guess.

    ``lacks`` says why it is not all of the file, or nothing.
    """

    text: str
    encoding: str
    is_guess: bool = False
    lacks: str = ""

    def told(self, document: Any) -> Any:
        """Returns a document that was made of the text, with what is to be said of that."""
        told = InPart(document, self.lacks) if self.lacks else document
        return Guessed(told, self.encoding) if self.is_guess else told


def read_text(content: BinaryIO, source: ParserInput, stated: str | None = None) -> Text:
    """Returns the text of a file.

    Args:
        content: of the file.
        source: what else is known of it.
        stated: the encoding that the file itself names, which counts where the media type names none.

    Raises:
        ValueError: the bytes are no text in any encoding.
    """
    charset = _CHARSET.search(source.content_type or "")
    return decode_text(content.read(), charset[1] if charset else stated or source.encoding)


def decode_text(content: bytes, stated: str | None = None) -> Text:
    """Returns the text of bytes.

    A byte order mark decides; then UTF-8, where bytes beyond ASCII are that; then the encoding that is
    stated; then Windows-1252, unless what it gives looks like nothing that people write, or a guess from the
    first 64 KiB is far better.

    Raises:
        ValueError: the bytes are no text in any encoding.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return Text(content[len(mark) :].decode(encoding, "replace"), encoding)
    known = text_encoding(stated) if stated else None
    # What is beyond ASCII and happens to be UTF-8 is nothing else.
    candidates = ["utf-8", known] if known is None or not content.isascii() else [known, "utf-8"]
    for candidate in filter(None, candidates):
        try:
            return _without_nul(Text(content.decode(candidate), candidate))
        except UnicodeError:
            continue
    encoding = _guess(content[:_SAMPLE])
    return _without_nul(Text(content.decode(encoding, "replace"), encoding, is_guess=True))


def _without_nul(text: Text) -> Text:
    """A text without NUL characters, which files have that a crash has cut."""
    nul = text.text.count("\0")
    if not nul:
        return text
    written = text.text.rstrip("\0")
    if not written or written.count("\0") * _TEXT_FOR_NUL > len(written):
        raise ValueError("it is no text: it has NUL characters")
    return text._replace(text=text.text.replace("\0", ""), lacks=f"{nul:,} NUL characters in it are left out")


def _guess(sample: bytes) -> str:
    western = _decoded(sample, _WESTERN)
    is_western = western is not None and _looks_written(western)
    if western is not None and is_western and (relative := _relative(sample, western)):
        return relative
    if is_western and len(sample) < _LONG:
        return _WESTERN
    best, coherence, known = _by_languages(sample)
    if is_western:
        return best if best is not None and coherence >= known + _FAR_BETTER else _WESTERN
    if len(sample) < _LONG or best is None or best in _ONE_BYTE:
        # Which of several alphabets it is, shows in the letters themselves.
        tried = _OTHERS if len(sample) < _LONG else _ONE_BYTE
        texts = {one: text for one in tried if (text := _decoded(sample, one)) is not None}
        fitting = [one for one, text in texts.items() if _share_of_words(text) > 0.9 and not _mixes(text)]
        if fitting:
            return max(fitting, key=lambda one: _likelihood(texts[one]))
    if best is None:
        best = next((one for one in (_WESTERN, _CONSOLE) if _decoded(sample, one) is not None), None)
        if best is None or _CONTROLS.search(sample):
            raise ValueError("it is no text in any known encoding")
    return best


def _relative(sample: bytes, text: str) -> str | None:
    """An encoding that differs from the Western one in a few letters, where the text shows those."""
    if b"\xa4" in sample and not any(0x80 <= byte < 0xA0 for byte in sample):
        return "iso8859_15"  # Money: the sign of no currency is in nobody's text.
    lower = text.lower()
    if _TURKISH.search(lower) and _NOT_TURKISH.isdisjoint(lower):
        return "cp1254"
    return None


def _by_languages(sample: bytes) -> tuple[str | None, float, float]:
    """The encoding in which most is words of a language, how much that is, and how much in Windows-1252."""
    from charset_normalizer import from_bytes

    tried = [_WESTERN, *_OTHERS]
    found = from_bytes(sample, steps=5, chunk_size=512, enable_fallback=False, cp_isolation=tried)
    known = max((one.coherence for one in found if one.encoding == _WESTERN), default=0.0)
    for one in found:
        if one.encoding == _WESTERN or not _mixes(_decoded(sample, one.encoding) or ""):
            return one.encoding, one.coherence, known
    return None, 0.0, known


def _decoded(sample: bytes, encoding: str) -> str | None:
    """A sample as text, or None; a character that the end of the sample cuts is left out."""
    for cut in range(4):
        try:
            return sample[: len(sample) - cut].decode(encoding)
        except UnicodeError:
            continue
    return None


def _looks_written(text: str) -> bool:
    """Whether letters beyond ASCII stand in words as in the languages of Western Europe.

    There they are the fewer part, also of most words that have some, and neither a sign nor a capital letter
    stands behind a small one.
    """
    beyond = [place for place, one in enumerate(text) if one > "\x7f"]
    letters = sum(one.isalpha() for one in text)
    odd = 0
    for place in beyond:
        one, before, behind = text[place], text[place - 1 : place], text[place + 1 : place + 2]
        if one.isalpha():
            odd += one.isupper() and before.islower()
        else:
            odd += before.isalpha() and behind.isalpha() and one not in "\u2019\u00ad\u00b7\u2013\u2014"
    accented = sum(text[place].isalpha() for place in beyond)
    is_control = any(unicodedata.category(text[place]) == "Cc" for place in beyond)
    return (
        not is_control
        and accented <= 0.4 * letters + 1
        and odd <= 0.1 * len(beyond)
        and not _has_foreign_words(text)
    )


def _has_foreign_words(text: str) -> bool:
    """Whether most words with letters beyond ASCII are made of those alone, or nearly."""
    words = [word for word in _WORD.findall(text) if len(word) > 2 and not word.isascii()]
    foreign = [
        word
        for word in words
        if sum(one > "\x7f" for one in word) > 0.7 * len(word) and not _NORTHERN.issuperset(word.lower())
    ]
    return 2 * len(foreign) > len(words)


def _mixes(text: str) -> bool:
    """Whether letters of the Latin and of another alphabet stand in the same words, which nobody writes."""
    words = [word for word in _WORD.findall(text[:_JUDGED]) if not word.isascii()]
    mixed = sum(
        any("a" <= one <= "z" for one in word.lower())
        and any(one > "\u024f" and unicodedata.combining(one) == 0 for one in word)
        for word in words
    )
    return 4 * mixed > len(words)


def _share_of_words(text: str) -> float:
    """Which part of the characters beyond ASCII are letters and marks of words."""
    beyond = [one for one in text if one > "\x7f" and one not in _QUOTES]
    if not beyond:
        return 0.0
    of_words = (unicodedata.category(one)[0] in ("LMP" if one > "\u2000" else "LM") for one in beyond)
    return sum(of_words) / len(beyond)


def _likelihood(text: str) -> float:
    """How much a short text looks as if somebody had written it: one script, and case as in words."""
    beyond = [one for one in text if one > "\x7f"]
    scripts = [unicodedata.name(one, "?").split(" ")[0] for one in beyond]
    main = max(set(scripts), key=scripts.count)
    wrong = sum(here.isupper() and before.islower() for before, here in pairwise(text))
    frequent = sum(
        one.lower() in _FREQUENT or script in _SYLLABLES for one, script in zip(beyond, scripts, strict=True)
    )
    return (scripts.count(main) + frequent - 2 * wrong) / len(beyond)
