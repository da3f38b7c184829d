"""The media type of a text whose encoding somebody states: with a ``charset``."""

from __future__ import annotations

import codecs

from svc_files.client.source import DescriptorReader, open_source
from svc_files.content_types import is_control, type_of_name

__all__ = ["NotInEncoding", "type_with_charset"]

_HEAD = 4_096
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class NotInEncoding(ValueError):
    """A text is not in the encoding that is stated."""


def type_with_charset(location: str, encoding: str) -> str | None:
    """Returns the media type of a text of this machine, with an encoding as its ``charset``.

    None for what needs none: UTF-8, texts with a byte order mark, and files that are no text by their name or
    their first bytes. Blocks while the file is read.

    Raises:
        NotInEncoding: the text is neither UTF-8 nor in that encoding.
        SourceUnreadable: the file can't be read.
    """
    media_type = type_of_name(location) or "text/plain"
    if not media_type.startswith("text/"):
        return None
    with open_source(location) as (descriptor, _):
        reader = DescriptorReader(descriptor, location)
        head = reader.read(_HEAD)
        if head.startswith(_MARKS) or not _is_text(head, encoding):
            return None
        reader.rewind()
        if _is_in(reader, "utf-8"):
            return None
        reader.rewind()
        if not _is_in(reader, encoding):
            raise NotInEncoding
    return f"{media_type}; charset={encoding}"


def _is_text(head: bytes, encoding: str) -> bool:
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    return not any(is_control(character) for character in text)


def _is_in(reader: DescriptorReader, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while piece := reader.read():
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True
