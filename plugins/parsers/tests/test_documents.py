"""What becomes of a real file of each kind. The documents are shown in full: they are a contract."""

from __future__ import annotations

from typing import Any

import pytest
from made_files import FILES

DOCUMENTS: dict[str, Any] = {
    "book.json": {"title": "War and Peace", "year": 1869, "big": 1180591620717411303424, "none": None},
    "books.jsonl": [{"year": 1869}, [1], "text"],
    "book.yaml": {
        "base": {"kind": "book", "pages": 100},
        "books": [
            {"kind": "book", "pages": 100, "title": "War and Peace", "year": 1869, "bought": "2024-05-01"},
            "hidden",
        ],
    },
    "book.toml": {"title": "War and Peace", "bought": "2024-05-01T12:30:00Z", "author": {"name": "Leo"}},
    "books.csv": [
        {"title": "War, and Peace", "year": "1869", "year 2": None},
        {"title": "Idiot", "year": "1868", "year 2": "x", "column 4": "more"},
    ],
    "books.tsv": [{"title": "War", "year": "1869"}],
    "notes.md": {
        "title": "Ships",
        "front_matter": {"title": "Ships", "tags": ["sea", "north"]},
        "headings": [
            {"level": 1, "text": "Of ships"},
            {"level": 1, "text": "Harbours"},
            {"level": 2, "text": "The north"},
        ],
        "text": "# Of ships\n"
        "\n"
        "They come. # not a heading\n"
        "\n"
        "Harbours\n"
        "========\n"
        "\n"
        "```\n"
        "# code, no heading\n"
        "```\n"
        "## The north ##\n",
    },
    "page.html": {
        "title": "Ships & harbours",
        "language": "en",
        "description": "About ships",
        "meta": {"description": "About ships", "og:type": "article"},
        "headings": [{"level": 1, "text": "Ships"}, {"level": 2, "text": "Harbours"}],
        "links": [{"href": "/north", "text": "To the north"}],
        "text": "Ships\nThey come and go.\nHarbours\nTo the north",
    },
    "books.xml": {
        "root": "library",
        "title": "Books",
        "content": {
            "title": "Books",
            "book": {"@id": "1", "@lang": "ru", "#text": "long", "author": ["Leo", "Fyodor"]},
            "empty": None,
        },
        "text": "Books\nLeo\nFyodor\nlong",
    },
    "book.pdf": {
        "title": "War and Peace",
        "author": "Leo Tolstoy",
        "created": "2024-05-01T12:30:00+02:00",
        "page_count": 2,
        "pages": ["War and Peace", "The second page"],
        "text": "War and Peace\n\nThe second page",
    },
    "photo.jpg": {
        "format": "JPEG",
        "width": 64,
        "height": 48,
        "mode": "RGB",
        "title": "A harbour",
        "author": "Ann",
        "camera": "Box 1",
        "taken_at": "2024-05-01T12:30:00",
        "latitude": -53.51,
        "longitude": 10.0,
        "exif": {
            "ImageDescription": "A harbour",
            "Model": "Box 1",
            "Artist": "Ann",
            "DateTimeOriginal": "2024:05:01 12:30:00",
        },
        "gps": {
            "GPSLatitudeRef": "S",
            "GPSLatitude": [53.0, 30.0, 36.0],
            "GPSLongitudeRef": "E",
            "GPSLongitude": [10.0, 0.0, 0.0],
        },
    },
    "square.png": {
        "format": "PNG",
        "width": 7,
        "height": 7,
        "mode": "P",
        "title": "A square",
        "info": {"Title": "A square"},
    },
    "a.gif": {"format": "GIF", "width": 16, "height": 9, "mode": "P"},
    "a.webp": {"format": "WEBP", "width": 16, "height": 9, "mode": "RGB"},
    "a.tiff": {
        "format": "TIFF",
        "width": 16,
        "height": 9,
        "mode": "RGB",
        "exif": {
            "ImageWidth": 16,
            "ImageLength": 9,
            "BitsPerSample": [8, 8, 8],
            "Compression": 1,
            "PhotometricInterpretation": 2,
            "SamplesPerPixel": 3,
            "RowsPerStrip": 9,
            "PlanarConfiguration": 1,
        },
        "info": {"compression": "raw"},
    },
    "a.bmp": {"format": "BMP", "width": 16, "height": 9, "mode": "RGB"},
    "song.mp3": {
        "title": "Night",
        "artist": "Ann",
        "album": "Day",
        "track": 3,
        "track_total": 9,
        "duration": 2.089795918367347,
        "bitrate": 128.0,
        "sample_rate": 44100,
        "channels": 2,
    },
    "sound.wav": {"duration": 1.0, "bitrate": 256.0, "sample_rate": 8000, "bit_depth": 16, "channels": 2},
    "film.mp4": {"title": "A film", "duration": 5.0},
    "letter.eml": {
        "title": "Grüße from the harbour",
        "from": [{"name": "Ann", "address": "ann@example.org"}],
        "to": [{"address": "bob@example.org"}, {"name": "Eve", "address": "eve@example.org"}],
        "date": "2024-05-01T12:30:00+02:00",
        "message_id": "<1@example.org>",
        "headers": {
            "subject": ["Grüße from the harbour"],
            "from": ["Ann <ann@example.org>"],
            "to": ["bob@example.org, Eve <eve@example.org>"],
            "date": ["Wed, 01 May 2024 12:30:00 +0200"],
            "message-id": ["<1@example.org>"],
            "mime-version": ["1.0"],
        },
        "attachments": [{"name": "list.pdf", "content_type": "application/pdf", "size": 4}],
        "text": "The ship is in.\nCome soon.\n",
    },
    "books.xlsx": {
        "sheets": [
            {
                "name": "Books",
                "columns": ["title", "year", "price"],
                "rows": [{"title": "War and Peace", "year": 1869, "price": 9.5}],
            }
        ],
        "text": "title\nyear\nprice\nWar and Peace",
    },
    "books.ods": {
        "sheets": [
            {
                "name": "Books",
                "columns": ["title", "year"],
                "rows": [{"title": "War and Peace", "year": 1869}],
            }
        ],
        "text": "title\nyear\nWar and Peace",
    },
    "report.docx": {
        "title": "A report",
        "author": "Ann",
        "comments": "generated by python-docx",
        "created": "2013-12-23T23:15:00Z",
        "modified": "2013-12-23T23:15:00Z",
        "headings": [{"level": 1, "text": "Harbours"}, {"level": 2, "text": "Of the north"}],
        "text": "Harbours\nShips come and go.\nships\t7\nOf the north",
    },
    "talk.pptx": {
        "comments": "generated using python-pptx",
        "created": "2013-01-27T09:14:16",
        "modified": "2013-01-27T09:15:58",
        "title": "Ships",
        "slides": [{"title": "Ships", "text": "Ships\nThey come and go", "notes": "Speak slowly"}],
        "text": "Ships\nThey come and go\nSpeak slowly",
    },
    "letter.odt": {
        "title": "A letter",
        "author": "Ann",
        "created": "2024-05-01T12:30:00",
        "headings": [{"level": 1, "text": "Harbours"}],
        "text": "Harbours\nShips come.",
    },
    "old.rtf": {"text": "Ships come and go.\nCafé"},
    "plain.txt": {"text": "Schöne Grüße\nfrom the harbour", "lines": 2, "encoding": "utf-8"},
}


def test_there_is_a_document_of_each_kind() -> None:
    assert set(DOCUMENTS) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_the_document_is(name: str, read) -> None:
    document = read(name, FILES[name]())
    if name == "letter.eml":
        (made_up,) = document["headers"].pop("content-type")
        assert made_up.startswith("multipart/mixed; boundary=")
    assert document == DOCUMENTS[name]
