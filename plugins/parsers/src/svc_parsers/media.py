"""Audio and video: tags and length. Nothing is played or decoded."""

from __future__ import annotations

from typing import Any, BinaryIO

from svc_query.api import Parser, ParserInput

from svc_parsers.shapes import bare_text, built_as, text_members, without_empty

__all__ = ["AudioParser", "VideoParser"]

_MEMBERS = {
    "title": "title",
    "artist": "artist",
    "album": "album",
    "albumartist": "album_artist",
    "composer": "composer",
    "genre": "genre",
    "year": "year",
    "comment": "comment",
    "track": "track",
    "track_total": "track_total",
    "disc": "disc",
    "disc_total": "disc_total",
    "duration": "duration",
    "bitrate": "bitrate",
    "samplerate": "sample_rate",
    "bitdepth": "bit_depth",
    "channels": "channels",
}
_MAXIMUM_VALUE = 10_000
_MAXIMUM_FURTHER = 200


class AudioParser(Parser):
    """Tags of music and speech: MP3, M4A, Ogg, Opus, FLAC, WAV, AIFF, WMA."""

    name = "audio"
    content_types = frozenset(
        {
            "audio/mpeg",
            "audio/mp3",
            "audio/mp4",
            "audio/x-m4a",
            "audio/aac",
            "audio/ogg",
            "audio/opus",
            "audio/flac",
            "audio/x-flac",
            "audio/wav",
            "audio/x-wav",
            "audio/vnd.wave",
            "audio/aiff",
            "audio/x-aiff",
            "audio/x-ms-wma",
        }
    )
    extensions = frozenset(
        {"mp3", "mp2", "m4a", "m4b", "aac", "ogg", "oga", "opus", "flac", "wav", "aiff", "aif", "wma", "spx"}
    )

    def parse(self, content: BinaryIO, source: ParserInput) -> dict[str, Any]:
        """Returns ``title``, ``artist``, ``album``, ``duration`` in seconds; lyrics are ``text``."""
        return _tags(content, source)


class VideoParser(Parser):
    """The same of the MPEG-4 family. Matroska, WebM and AVI are not read."""

    name = "video"
    content_types = frozenset({"video/mp4", "video/quicktime", "video/x-m4v"})
    extensions = frozenset({"mp4", "m4v", "mov"})

    def parse(self, content: BinaryIO, source: ParserInput) -> dict[str, Any]:
        """Returns ``title``, ``duration`` in seconds, and so on."""
        return _tags(content, source)


def _tags(content: BinaryIO, source: ParserInput) -> dict[str, Any]:
    from tinytag import TinyTag, TinyTagException

    try:
        with built_as("a recording of its kind"):
            tag = TinyTag.get(filename=source.name, file_obj=content)
    except TinyTagException as error:
        raise ValueError(str(error)) from error
    found = {name: _plain(getattr(tag, member, None)) for member, name in _MEMBERS.items()}
    further = list(tag.other.items())[:_MAXIMUM_FURTHER]
    lyrics = [str(text) for name, values in further if name == "lyrics" for text in values]
    members = without_empty(
        {**found, "other": {name: _plain(values) for name, values in further if name != "lyrics"}}
    )
    if not members:
        raise ValueError("it has neither tags nor a length that can be read")
    return {**members, **(text_members(lyrics) if lyrics else {})}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return bare_text(value)[:_MAXIMUM_VALUE]
    if isinstance(value, list):
        return [_plain(item) for item in value[:100]]
    return value if isinstance(value, (int, float)) else None
