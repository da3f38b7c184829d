"""Real files of each kind, made by other means than the libraries that read them, where that is possible."""

# ruff: noqa: E501

from __future__ import annotations

import io
import json
import struct
import wave
import zipfile
from collections.abc import Callable
from email.message import EmailMessage

import docx
import pptx
from PIL import ExifTags, Image
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import IFDRational

__all__ = ["FILES", "archive", "pdf", "xlsx"]


def archive(members: dict[str, str | bytes], first: str | None = None) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in members.items():
            kind = zipfile.ZIP_STORED if name == first else zipfile.ZIP_DEFLATED
            target.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), data, kind)
    return content.getvalue()


def pdf(pages: list[str], information: str = "") -> bytes:
    """A PDF by hand: catalogue, pages, one font, a content stream for each page."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(f"<< {information} >>")
    content = b"%PDF-1.4\n"
    offsets = []
    for number, item in enumerate(objects, 1):
        offsets.append(len(content))
        content += f"{number} 0 obj\n{item}\nendobj\n".encode("latin-1")
    start = len(content)
    content += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    content += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    content += (
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{start}\n%%EOF"
    ).encode()
    return content


def _pdf() -> bytes:
    return pdf(
        ["War and Peace", "The second page"],
        "/Title (War and Peace) /Author (Leo Tolstoy) /CreationDate (D:20240501123000+02'00')",
    )


def _jpeg() -> bytes:
    exif = Image.Exif()
    exif[ExifTags.Base.ImageDescription] = "A harbour"
    exif[ExifTags.Base.Model] = "Box 1"
    exif[ExifTags.Base.Artist] = "Ann"
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = "2024:05:01 12:30:00"
    position = exif.get_ifd(ExifTags.IFD.GPSInfo)
    position[ExifTags.GPS.GPSLatitudeRef] = "S"
    position[ExifTags.GPS.GPSLatitude] = (IFDRational(53), IFDRational(30), IFDRational(36))
    position[ExifTags.GPS.GPSLongitudeRef] = "E"
    position[ExifTags.GPS.GPSLongitude] = (IFDRational(10), IFDRational(0), IFDRational(0))
    content = io.BytesIO()
    Image.new("RGB", (64, 48), "navy").save(content, "JPEG", exif=exif)
    return content.getvalue()


def _png() -> bytes:
    told = PngInfo()
    told.add_text("Title", "A square")
    content = io.BytesIO()
    Image.new("P", (7, 7)).save(content, "PNG", pnginfo=told)
    return content.getvalue()


def _picture(kind: str) -> Callable[[], bytes]:
    def make() -> bytes:
        content = io.BytesIO()
        Image.new("RGB", (16, 9), "red").save(content, kind)
        return content.getvalue()

    return make


def _id3() -> bytes:
    def frame(name: bytes, text: str) -> bytes:
        data = b"\x03" + text.encode()
        return name + struct.pack(">IH", len(data), 0) + data

    frames = frame(b"TIT2", "Night") + frame(b"TPE1", "Ann") + frame(b"TALB", "Day") + frame(b"TRCK", "3/9")
    size = len(frames)
    syncsafe = bytes((size >> shift) & 0x7F for shift in (21, 14, 7, 0))
    # Frames of MPEG 1, layer III, 128 kbit/s, 44,100 Hz, are 417 bytes.
    return b"ID3\x03\0\0" + syncsafe + frames + (b"\xff\xfb\x90\x64" + bytes(413)) * 80


def _wav() -> bytes:
    content = io.BytesIO()
    with wave.open(content, "wb") as target:
        target.setnchannels(2)
        target.setsampwidth(2)
        target.setframerate(8_000)
        target.writeframes(bytes(4 * 8_000))
    return content.getvalue()


def _box(name: bytes, *parts: bytes) -> bytes:
    data = b"".join(parts)
    return struct.pack(">I", len(data) + 8) + name + data


def _mp4() -> bytes:
    header = _box(b"mvhd", bytes(12), struct.pack(">II", 1_000, 5_000), bytes(80))
    title = _box(b"\xa9nam", _box(b"data", struct.pack(">II", 1, 0), b"A film"))
    told = _box(b"udta", _box(b"meta", bytes(4), _box(b"ilst", title)))
    return _box(b"ftyp", b"isom\0\0\2\0isommp42") + _box(b"moov", header, told) + _box(b"mdat", bytes(64))


def _mail() -> bytes:
    message = EmailMessage()
    message["Subject"] = "Grüße from the harbour"
    message["From"] = "Ann <ann@example.org>"
    message["To"] = "bob@example.org, Eve <eve@example.org>"
    message["Date"] = "Wed, 01 May 2024 12:30:00 +0200"
    message["Message-ID"] = "<1@example.org>"
    message.set_content("The ship is in.\nCome soon.\n")
    message.add_alternative("<p>The <b>ship</b> is in.</p>", subtype="html")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="list.pdf")
    return message.as_bytes()


def _docx() -> bytes:
    document = docx.Document()
    document.core_properties.title = "A report"
    document.core_properties.author = "Ann"
    document.add_heading("Harbours", 1)
    document.add_paragraph("Ships come and go.")
    table = document.add_table(1, 2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "ships", "7"
    document.add_heading("Of the north", 2)
    content = io.BytesIO()
    document.save(content)
    return content.getvalue()


def _pptx() -> bytes:
    presentation = pptx.Presentation()
    presentation.core_properties.title = ""
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Ships"
    slide.placeholders[1].text = "They come and go"
    slide.notes_slide.notes_text_frame.text = "Speak slowly"
    content = io.BytesIO()
    presentation.save(content)
    return content.getvalue()


_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def xlsx(rows: str | None = None) -> bytes:
    if rows is None:
        rows = (
            '<row r="1"><c r="A1" t="inlineStr"><is><t>title</t></is></c><c r="B1" t="inlineStr"><is><t>year</t></is></c>'
            '<c r="C1" t="inlineStr"><is><t>price</t></is></c></row><row r="2"><c r="A2" t="inlineStr"><is><t>War and Peace</t>'
            '</is></c><c r="B2"><v>1869</v></c><c r="C2"><v>9.5</v></c></row>'
        )
    return archive(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" '
            f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}"><sheets>'
            '<sheet name="Books" sheetId="1" r:id="rId1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" '
            f'Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData></worksheet>',
        }
    )


_ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.3"'
)


def _opendocument(kind: str, body: str) -> bytes:
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    entries = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{what}"/>'
        for path, what in (("/", media_type), ("content.xml", "text/xml"), ("meta.xml", "text/xml"))
    )
    return archive(
        {
            "mimetype": media_type,
            "content.xml": f"<office:document-content {_ODF}><office:body>{body}</office:body></office:document-content>",
            "meta.xml": f"<office:document-meta {_ODF}><office:meta><dc:title>A letter</dc:title>"
            "<dc:creator>Ann</dc:creator><meta:creation-date>2024-05-01T12:30:00</meta:creation-date>"
            "</office:meta></office:document-meta>",
            "META-INF/manifest.xml": '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            f"{entries}</manifest:manifest>",
        },
        first="mimetype",
    )


def _odt() -> bytes:
    return _opendocument(
        "text",
        '<office:text><text:h text:outline-level="1">Harbours</text:h><text:p>Ships <text:span>come</text:span>.</text:p>'
        "</office:text>",
    )


def _ods() -> bytes:
    def cell(text: str) -> str:
        return f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'

    return _opendocument(
        "spreadsheet",
        f'<office:spreadsheet><table:table table:name="Books"><table:table-row>{cell("title")}{cell("year")}</table:table-row>'
        f'<table:table-row>{cell("War and Peace")}<table:table-cell office:value-type="float" office:value="1869">'
        "<text:p>1869</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>",
    )


HTML = b"""<!doctype html><html lang="en"><head><title>Ships &amp; harbours</title>
<meta name="description" content="About ships"><meta property="og:type" content="article">
<script>document.title = "no"</script><style>p { color: red }</style></head>
<body><h1>Ships</h1><p>They <b>come</b> and go.</p><h2>Harbours</h2>
<a href="/north">To the north</a><noscript>hidden</noscript></body></html>"""

XML = b"""<?xml version="1.0"?><library xmlns="urn:books"><title>Books</title>
<book id="1" lang="ru"><author>Leo</author><author>Fyodor</author>long</book><empty/></library>"""

YAML = b"""# of the library
base: &base {kind: book, pages: 100}
books:
  - {<<: *base, title: War and Peace, year: 1869, bought: 2024-05-01}
  - !secret hidden
"""

MARKDOWN = b"""---
title: Ships
tags: [sea, north]
---
# Of ships

They come. # not a heading

Harbours
========

```
# code, no heading
```
## The north ##
"""

FILES: dict[str, Callable[[], bytes]] = {
    "book.json": lambda: json.dumps(
        {"title": "War and Peace", "year": 1869, "big": 2**70, "none": None}
    ).encode(),
    "books.jsonl": lambda: b'{"year": 1869}\n\n[1]\r\n"text"\n',
    "book.yaml": lambda: YAML,
    "book.toml": lambda: b'title = "War and Peace"\nbought = 2024-05-01T12:30:00Z\n[author]\nname = "Leo"\n',
    "books.csv": lambda: b'title,year,year\n"War, and Peace",1869,\n\nIdiot,1868,x,more\n',
    "books.tsv": lambda: b"title\tyear\nWar\t1869\n",
    "notes.md": lambda: MARKDOWN,
    "page.html": lambda: HTML,
    "books.xml": lambda: XML,
    "book.pdf": _pdf,
    "photo.jpg": _jpeg,
    "square.png": _png,
    "a.gif": _picture("GIF"),
    "a.webp": _picture("WEBP"),
    "a.tiff": _picture("TIFF"),
    "a.bmp": _picture("BMP"),
    "song.mp3": _id3,
    "sound.wav": _wav,
    "film.mp4": _mp4,
    "letter.eml": _mail,
    "books.xlsx": xlsx,
    "books.ods": _ods,
    "report.docx": _docx,
    "talk.pptx": _pptx,
    "letter.odt": _odt,
    "old.rtf": lambda: rb"{\rtf1\ansi{\fonttbl{\f0 Times;}}\f0 Ships \b come\b0  and go.\par Caf\'e9\par}",
    "plain.txt": "Schöne Grüße\nfrom the harbour".encode,
}
"""A file of each kind, by a name that tells the kind."""
