"""What the first bytes and the name say: the short cuts give what the libraries give."""

from __future__ import annotations

import random

import filetype
import pytest

from svc_files import content_types
from svc_files.content_types import OCTET_STREAM, choose_content_type

FTYP = b"\x00\x00\x00\x14ftyp"
ZIP = b"PK\x03\x04" + bytes(26)
OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PNG = b"\x89PNG\r\n\x1a\n"

# One content for each type of the library, by its class; some need no more than their first bytes.
SAMPLES: dict[str, bytes] = {
    "image.Dwg": b"AC10",
    "image.Xcf": b"gimp xcf v",
    "image.Jpeg": b"\xff\xd8\xff",
    "image.Jpx": b"\x00\x00\x00\x0c" + bytes(12) + b"ftypjp2 ",
    "image.Apng": PNG + bytes(4) + b"acTL",
    "image.Png": PNG,
    "image.Gif": b"GIF",
    "image.Webp": b"RIFF\x00\x00\x00\x00WEBPVP",
    "image.Tiff": b"MM\x00*",
    "image.Cr2": b"II*\x00\x00\x00\x00\x00CR",
    "image.Bmp": b"BM",
    "image.Jxr": b"II\xbc",
    "image.Psd": b"8BPS",
    "image.Ico": b"\x00\x00\x01\x00",
    "image.Heic": FTYP + b"heic",
    "image.Dcm": bytes(128) + b"DICM",
    "image.Avif": FTYP + b"avif",
    "video.M3gp": b"ftyp3gp",
    "video.Mp4": FTYP + b"isom",
    "video.M4v": b"\x00\x00\x00\x1cftypM4V",
    "video.Mkv": b"\x1a\x45\xdf\xa3\x42\x82\x88matroska",
    "video.Mov": FTYP + b"qt  ",
    "video.Avi": b"RIFF\x00\x00\x00\x00AVI ",
    "video.Wmv": b"0&\xb2\x75\x8e\x66\xcf\x11\xa6\xd9",
    "video.Mpeg": b"\x00\x00\x01\xba",
    "video.Webm": b"\x1a\x45\xdf\xa3\x42\x82\x84webm",
    "video.Flv": b"FLV\x01",
    "audio.Aac": b"\xff\xf1",
    "audio.Midi": b"MThd",
    "audio.Mp3": b"ID3",
    "audio.M4a": FTYP + b"M4A",
    "audio.Ogg": b"OggS",
    "audio.Flac": b"fLaC",
    "audio.Wav": b"RIFF\x00\x00\x00\x00WAVE",
    "audio.Amr": b"#!AMR\n",
    "audio.Aiff": b"FORM\x00\x00\x00\x00AIFF",
    "font.Woff": b"wOFF\x00\x01\x00\x00",
    "font.Woff2": b"wOF2OTTO",
    "font.Ttf": b"\x00\x01\x00\x00\x00",
    "font.Otf": b"OTTO\x00",
    "archive.Br": b"\xce\xb2\xcf\x81",
    "archive.Rpm": b"\xed\xab\xee\xdb",
    "archive.Epub": ZIP + b"mimetypeapplication/epub+zip",
    "archive.Zip": b"PK\x05\x06",
    "archive.Tar": bytes(257) + b"ustar",
    "archive.Rar": b"Rar!\x1a\x07\x00",
    "archive.Gz": b"\x1f\x8b\x08",
    "archive.Bz2": b"BZh",
    "archive.SevenZ": b"7z\xbc\xaf\x27\x1c",
    "archive.Pdf": b"\xef\xbb\xbf%PDF",
    "archive.Exe": b"MZ",
    "archive.Swf": b"FWS",
    "archive.Rtf": b"{\\rtf",
    "archive.Nes": b"NES\x1a",
    "archive.Crx": b"Cr24",
    "archive.Cab": b"ISc(",
    "archive.Eot": bytes(8) + b"\x02\x00\x01" + bytes(23) + b"LP",
    "archive.Ps": b"%!",
    "archive.Xz": b"\xfd7zXZ\x00",
    "archive.Sqlite": b"SQLi",
    "archive.Deb": b"!<arch>\ndebian-binary",
    "archive.Ar": b"!<arch>",
    "archive.Z": b"\x1f\x9d",
    "archive.Lzop": b"\x89LZO\x00\r\n\x1a",
    "archive.Lz": b"LZIP",
    "archive.Elf": b"\x7fELF",
    "archive.Lz4": b"\x04\x22M\x18",
    "archive.Zstd": b"\x5f*M\x18\x00\x00\x00\x00\x28\xb5/\xfd",
    "document.Doc": OFFICE + bytes(504) + b"\xec\xa5\xc1\x00",
    "document.Docx": ZIP + b"word/",
    "document.Odt": ZIP + b"mimetypeapplication/vnd.oasis.opendocument.text",
    "document.Xls": OFFICE + bytes(504) + b"\xfd\xff\xff\xff\x00\x00\x02",
    "document.Xlsx": ZIP + b"xl/",
    "document.Ods": ZIP + b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
    "document.Ppt": OFFICE + bytes(504) + b"\xa0\x46\x1d\xf0",
    "document.Pptx": ZIP + b"ppt/",
    "document.Odp": ZIP + b"mimetypeapplication/vnd.oasis.opendocument.presentation",
    "application.Wasm": b"\x00asm\x01\x00\x00\x00",
}
# The library looks for four bytes in three: it never matches.
MATCHES_NOTHING = "archive.Dcm"


def name_of(kind: object) -> str:
    """The class of a type as the samples name it."""
    return f"{type(kind).__module__.rpartition('.')[2]}.{type(kind).__name__}"


def by_library(head: bytes) -> str:
    mime = filetype.guess_mime(head)
    return mime if isinstance(mime, str) else OCTET_STREAM


def test_the_samples_are_of_every_type_of_the_library() -> None:
    assert filetype.version == content_types._SIGNATURES_OF
    assert {name_of(kind) for kind in filetype.types} == {*SAMPLES, MATCHES_NOTHING}
    for kind in filetype.types:
        if name_of(kind) != MATCHES_NOTHING:
            assert kind.match(SAMPLES[name_of(kind)].ljust(600, b"\x00")), name_of(kind)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_signature_is_recognised_as_the_library_does(name: str) -> None:
    head = SAMPLES[name].ljust(600, b"\x00")
    assert by_library(head) != OCTET_STREAM or name == "archive.Eot"
    chance = random.Random(name)
    for length in (600, *range(4, 300, 7)):
        assert choose_content_type(None, head[:length] + b"\x00", "f") == by_library(head[:length] + b"\x00")
    for _ in range(300):
        changed = bytearray(head)
        for _ in range(chance.randint(1, 2)):
            changed[chance.randrange(40)] = chance.randrange(256)
        assert choose_content_type(None, bytes(changed), "f") == by_library(bytes(changed))


def test_contents_with_any_first_two_bytes_are_as_the_library_says() -> None:
    tail = random.Random(1).randbytes(300) + b"\x00"
    for first in range(256):
        for second in range(0, 256, 3):
            head = bytes((first, second)) + tail
            assert choose_content_type(None, head, "f") == by_library(head)


def test_another_version_of_the_library_is_always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(filetype, "version", "1.3.0")
    monkeypatch.setattr(filetype, "guess_mime", asked.append)
    assert choose_content_type(None, b"\x00unknown\x00", "f") == OCTET_STREAM
    assert asked == [b"\x00unknown\x00"]


NAMES = """f a.txt a.tar.gz b.a.tgz a.b.json .gitignore .txt a. a..txt X.JPEG a.gz.x c:a.csv http:.html
data:text/html a.svgz a.b.c.d.svg.gz a.txt.gz.bz2 a_b.tar.xz"""


@pytest.mark.parametrize("name", NAMES.split())
def test_a_name_says_what_its_last_two_extensions_say(name: str) -> None:
    mime, encoding = content_types._NAMES.guess_type("x" + name.replace(":", "_"), strict=False)
    expected = mime if encoding is None else content_types._BY_ENCODING.get(encoding, OCTET_STREAM)
    assert content_types._by_name(name) == expected
