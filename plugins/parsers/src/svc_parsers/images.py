"""Images: what stands in their headers. No picture is decoded, so none can be too large."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, BinaryIO

from svc_query.api import Parser, ParserInput

from svc_parsers.shapes import bare_text, without_empty

__all__ = ["ImageParser"]

_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "ICO", "PPM", "AVIF", "JPEG2000")
_MAXIMUM_TAGS = 500
_MAXIMUM_VALUE = 2_000
_OF_THE_FILE = frozenset(
    {"ExifOffset", "GPSInfo", "StripOffsets", "StripByteCounts", "TileOffsets", "TileByteCounts", "MakerNote"}
)
"""Tags that say where something stands in the file, and nothing about the picture."""

_EXIF_IFD = 0x8769
_GPS_IFD = 0x8825


class ImageParser(Parser):
    """Format, size and what the camera wrote."""

    name = "image"
    content_types = frozenset(
        {
            "image/jpeg",
            "image/png",
            "image/gif",
            "image/webp",
            "image/tiff",
            "image/bmp",
            "image/x-ms-bmp",
            "image/vnd.microsoft.icon",
            "image/x-icon",
            "image/x-portable-pixmap",
            "image/avif",
            "image/jp2",
            "image/jpx",
        }
    )
    extensions = frozenset(
        {"jpg", "jpeg", "png", "gif", "webp", "tif", "tiff", "bmp", "ico", "ppm", "pgm", "avif", "jp2"}
    )

    def parse(self, content: BinaryIO, source: ParserInput) -> dict[str, Any]:
        """Returns ``format``, ``width``, ``height``, ``title``, ``exif``, where and when it was taken."""
        from PIL import ExifTags, Image, UnidentifiedImageError

        with warnings.catch_warnings():
            # A picture of any size may be described; its pixels are left alone.
            warnings.simplefilter("ignore")
            Image.MAX_IMAGE_PIXELS = None
            try:
                image = Image.open(content, formats=_FORMATS)
            except UnidentifiedImageError as error:
                raise ValueError("it is no image of a known format") from error
            width, height = image.size
            # A PNG without any would be decoded to the end to look for it.
            has_exif = image.format != "PNG" or "exif" in image.info
            told = image.getexif() if has_exif else Image.Exif()
            exif = _named(told, ExifTags.TAGS) | _named(told.get_ifd(_EXIF_IFD), ExifTags.TAGS)
            position = _named(told.get_ifd(_GPS_IFD), ExifTags.GPSTAGS)
        text = {
            name: bare_text(value)[:_MAXIMUM_VALUE]
            for name, value in list(image.info.items())[:_MAXIMUM_TAGS]
            if isinstance(name, str) and isinstance(value, str)
        }
        members = {
            "format": image.format,
            "width": width,
            "height": height,
            "mode": image.mode,
            "title": exif.get("ImageDescription") or text.get("Title"),
            "author": exif.get("Artist") or text.get("Author"),
            "camera": exif.get("Model"),
            "taken_at": _time(exif.get("DateTimeOriginal") or exif.get("DateTime")),
            "latitude": _degrees(position, "GPSLatitude", "S"),
            "longitude": _degrees(position, "GPSLongitude", "W"),
            "exif": exif,
            "gps": position,
            "info": text,
        }
        return without_empty(members)


def _named(tags: Mapping[int, Any], names: Mapping[int, str]) -> dict[str, Any]:
    found = {}
    for number, value in list(tags.items())[:_MAXIMUM_TAGS]:
        name = names.get(number)
        plain = _plain(value)
        if name is not None and name not in _OF_THE_FILE and plain not in (None, "", []):
            found[name] = plain
    return found


def _plain(value: Any) -> Any:
    """A value of EXIF as one that JSON has; bytes that are no text are left out."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, bytes):
        text = value.strip(b"\0 ")
        return bare_text(text.decode("ascii")) if text.isascii() and len(text) <= _MAXIMUM_VALUE else None
    if isinstance(value, str):
        return bare_text(value)[:_MAXIMUM_VALUE]
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value[:100]]
    try:
        return float(value)
    except (TypeError, ValueError, ZeroDivisionError):
        return None


def _time(value: Any) -> str | None:
    """``2024:05:01 12:30:00`` as ISO 8601; None where it is something else."""
    if not isinstance(value, str) or len(value) < 19:
        return None
    date, clock = value[:10].replace(":", "-"), value[11:19]
    return f"{date}T{clock}" if (date + clock).replace("-", "").replace(":", "").isdigit() else None


def _degrees(position: Mapping[str, Any], name: str, negative: str) -> float | None:
    parts = position.get(name)
    if not isinstance(parts, list) or len(parts) != 3 or not all(isinstance(part, float) for part in parts):
        return None
    degrees = parts[0] + parts[1] / 60 + parts[2] / 3600
    if not -180 <= degrees <= 180:
        return None
    return round(float(-degrees if position.get(f"{name}Ref") == negative else degrees), 7)
