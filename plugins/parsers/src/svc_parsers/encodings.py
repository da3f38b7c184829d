"""Text of bytes whose encoding nobody says for sure."""

from __future__ import annotations

import codecs
import re

__all__ = ["decode_text"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.:+-]{1,40})", re.IGNORECASE)
_SAMPLE = 64 * 1024


def decode_text(content: bytes, content_type: str | None) -> tuple[str, str]:
    """Returns the text and the name of its encoding.

    A byte order mark decides, then what the media type says, then UTF-8 if it is that, then a guess from
    the first 64 KiB.

    Args:
        content: all bytes.
        content_type: as it is stored; its ``charset`` counts.

    Raises:
        ValueError: the bytes are no text in any encoding.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace"), encoding
    stated = _CHARSET.search(content_type or "")
    for candidate in (stated[1] if stated else "", "utf-8"):
        try:
            encoding = codecs.lookup(candidate).name
            return _without_nul(content.decode(encoding)), encoding
        except (LookupError, UnicodeError):
            continue
    encoding = _guess(content[:_SAMPLE])
    return _without_nul(content.decode(encoding, "replace")), encoding


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it is no text: it has NUL characters")
    return text


def _guess(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(sample, steps=5, chunk_size=512, enable_fallback=False).best()
    if best is None:
        raise ValueError("it is no text in any known encoding")
    return best.encoding
