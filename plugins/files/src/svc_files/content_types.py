"""Media types: what a stored file is said to be.

The caller's word decides, then the first bytes, then the name. The tables stand here or in Python's own
library, so the answer is the same on every machine.
"""

from __future__ import annotations

import mimetypes
import re
from functools import lru_cache

from svc.errors import InvalidInput
from svc.plugin import join_content_encoding, split_content_encoding

__all__ = [
    "OCTET_STREAM",
    "base_type",
    "check_content_type",
    "choose_content_type",
    "in_coding",
    "is_compressed",
    "is_control",
    "type_of_name",
]

OCTET_STREAM = "application/octet-stream"
MAXIMUM_LENGTH = 255

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = r'"(?:[\t !#-\[\]-~]|\\[\t -~])*"'
_MEDIA_TYPE = re.compile(rf"{_WORD}/{_WORD}(?:[ \t]*;(?:[ \t]*{_WORD}=(?:{_WORD}|{_QUOTED}))?)*")

_BY_ENCODING = {
    "gzip": "application/gzip",
    "bzip2": "application/x-bzip2",
    "xz": "application/x-xz",
    "compress": "application/x-compress",
    "br": "application/x-brotli",
}

_NAMES = mimetypes.MimeTypes(filenames=())
for _extension, _type in {
    ".avif": "image/avif",
    ".cbor": "application/cbor",
    ".csv": "text/csv",
    ".epub": "application/epub+zip",
    ".flac": "audio/flac",
    ".geojson": "application/geo+json",
    ".jsonl": "application/jsonl",
    ".log": "text/plain",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".js": "text/javascript",
    ".ndjson": "application/x-ndjson",
    ".odp": "application/vnd.oasis.opendocument.presentation",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ogg": "audio/ogg",
    ".parquet": "application/vnd.apache.parquet",
    ".rst": "text/x-rst",
    ".sql": "application/sql",
    ".toml": "application/toml",
    ".wasm": "application/wasm",
    ".webm": "video/webm",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}.items():
    _NAMES.add_type(_type, _extension)

# Containers whose first bytes say only how they are packed: the name says more, when it is of the family.
_CONTAINERS: dict[str, tuple[str, ...]] = {
    "application/zip": ("application/vnd.", "application/epub", "application/java", "application/x-zip"),
    "video/mp4": ("audio/mp4",),
    "application/ogg": ("audio/ogg", "video/ogg"),
    "audio/ogg": ("video/ogg",),
}

_TEXT_SIGNATURES = (
    (b"%PDF", "application/pdf"),
    (b"%!", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
    (b"!<arch>\n", "application/x-unix-archive"),
)
_TEXT_STARTS = tuple(start for start, _ in _TEXT_SIGNATURES)

# What contents that the library knows begin with, or a part of it: most unknown contents begin otherwise,
# and need not be shown to all of its types. It holds for this version of it; another one is always asked.
_SIGNATURES_OF = "1.2.0"
_SIGNATURES = re.compile(
    rb"[\x00](?:\x00[\x00\x01]|\x01\x00|asm)|\x04\x22M|\x1a\x45\xdf|\x1f[\x8b\x9d\xa0]|[\x22-\x28]\xb5/"
    rb"|!<a|#!A|%!|%PD|0&\xb2|7z\xbc|8BP|AC1|BM|BZh|[CF]WS|Cr2|FLV|FOR|GIF|I(?:D3|I[*\xbc]|Sc)|LZI"
    rb"|M(?:4A|M\x00|SC|Th|Z)|NES|OTT|Ogg|PK|RIF|Rar|SQL|[P-_]\*M|\x7fEL|\x89(?:PN|LZ)|\xce\xb2|\xd0\xcf\x11"
    rb"|\xed\xab|\xef\xbb\xbf%P|\xfd7z|\xff[\xd8\xf1-\xf3\xf9\xfb]|fLa|fty|gim|wOF|\{\\r"
    rb"|.{4}ftyp|.{8}[\x01\x02]\x00[\x00-\x02].{23}LP|.{128}DICM|.{257}ustar",
    re.DOTALL,
)

_COMPRESSED = re.compile(
    r"(?:image/(?!svg|bmp|x-ms-bmp|tiff|x-portable)|video/|audio/(?!x-wav|wav|basic|midi)|font/woff)"
    r"|application/(?:zip|gzip|x-gzip|x-bzip2|x-xz|x-brotli|zstd|x-7z|x-rar|vnd\.rar|x-compress"
    r"|pdf|epub|java-archive|vnd\.openxmlformats|vnd\.oasis|vnd\.apache\.parquet)"
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_CONTROL_BYTES = bytes(byte for byte in range(256) if _CONTROL.match(bytes((byte,))))


def choose_content_type(given: str | None, head: bytes, name: str) -> str:
    """Returns the media type that a file is stored with; the caller's, if ``given``, decides.

    ``head`` is the first bytes of the content, a few kilobytes at most. Raises InvalidInput where ``given``
    is not a media type (RFC 9110, 8.3.1) or over 255 characters.
    """
    stated = check_content_type(given)
    if stated is not None:
        return stated
    by_name = _by_name(name)
    is_text = _is_text(head)
    by_bytes = _by_bytes(head, is_text)
    if by_bytes is not None:
        if by_name is not None and by_name.startswith(_CONTAINERS.get(by_bytes, ("\0",))):
            return by_name
        return by_bytes
    if by_name is not None:
        return by_name
    return "text/plain" if is_text else OCTET_STREAM


def check_content_type(given: str | None) -> str | None:
    """Returns the media type that a caller states, None when there is none."""
    if given is None or not (given := given.strip()):
        return None
    if len(given) > MAXIMUM_LENGTH or _MEDIA_TYPE.fullmatch(given) is None:
        raise InvalidInput("The content type is not a media type.", field="content_type")
    return given


def type_of_name(name: str) -> str | None:
    """Returns the media type that the ending of a name says, None where it says none."""
    return _by_name(name.rpartition("/")[2])


def is_control(character: str) -> bool:
    """Whether a character is one that no text has."""
    return character < "\x80" and _CONTROL.match(character.encode()) is not None


def in_coding(content_type: str, coding: str) -> str:
    """Returns the media type of a content that is stored in a coding; InvalidInput where it names none."""
    joined = join_content_encoding(content_type, coding)
    if joined is None or len(joined) > MAXIMUM_LENGTH:
        raise InvalidInput("Content-Encoding names no content coding.", field="Content-Encoding")
    return joined


def base_type(content_type: str | None) -> str:
    """Returns ``type/subtype`` in lower case, without parameters; empty when there is none."""
    return (content_type or "").partition(";")[0].strip().lower()


def is_compressed(content_type: str | None) -> bool:
    """Whether contents of this type are compressed already, so that compressing again is waste."""
    if content_type is not None and split_content_encoding(content_type)[1] is not None:
        return True
    return _COMPRESSED.match(base_type(content_type)) is not None


def _by_bytes(head: bytes, is_text: bool) -> str | None:
    """What the first bytes say.

    Text can only be one of the formats that begin as text: the library would take prose that begins with BM
    for a bitmap. It asks eighty types, in 40 µs, so it is asked only where the head begins like one of them.
    """
    if len(head) < 4:
        return None
    if is_text:
        if not head.startswith(_TEXT_STARTS):
            return None
        return next(mime for start, mime in _TEXT_SIGNATURES if head.startswith(start))
    # Imported here: most commands never ask it, and its eighty types take time to import.
    import filetype

    if filetype.version == _SIGNATURES_OF and _SIGNATURES.match(head) is None:
        return None
    mime = filetype.guess_mime(head)
    return mime if isinstance(mime, str) else None


def _by_name(name: str) -> str | None:
    # The last two extensions decide: .tar.gz.
    return _by_extensions(name[len(name.rsplit(".", 2)[0]) :])


@lru_cache(maxsize=1024)
def _by_extensions(extensions: str) -> str | None:
    # The library splits URLs; a name that looks like one must not be taken for it.
    mime, encoding = _NAMES.guess_type("x" + extensions.replace(":", "_"), strict=False)
    if encoding is not None:
        return _BY_ENCODING.get(encoding, OCTET_STREAM)
    return mime


def _is_text(head: bytes) -> bool:
    # A search soon finds control characters where they are many; a translation is faster where there is none.
    if not head or _CONTROL.search(head, 0, 64) or len(head.translate(None, _CONTROL_BYTES)) < len(head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character cut by the end of the window is no reason to doubt.
        return error.start >= len(head) - 3 and error.reason == "unexpected end of data"
    return True
