"""Forms with files, for browsers without JavaScript: read whole, so small."""

from __future__ import annotations

from typing import Any

import falcon
from falcon.media.multipart import MultipartForm, MultipartParseOptions
from msgspec import Struct

from svc.errors import InvalidInput, PayloadTooLarge
from svc.plugin import SvcRequest, body_stream

__all__ = ["MULTIPART_TYPE", "SentFile", "read_multipart"]

MULTIPART_TYPE = "multipart/form-data"
MOST_BYTES = 8 * 1024 * 1024
_MOST_PARTS = 200
_MOST_FIELD = 64 * 1024


class SentFile(Struct, frozen=True):
    """A file of a form.

    Attributes:
        name: what the browser calls it, without directories.
        content_type: what the browser takes it for; None where it says nothing.
        content: its bytes.
    """

    name: str
    content_type: str | None
    content: bytes


def read_multipart(req: SvcRequest) -> tuple[dict[str, list[str]], list[SentFile]]:
    """Returns the fields and the files of the form that was sent.

    Raises:
        PayloadTooLarge: it is over 8 MiB.
        InvalidInput: it is malformed, or has too many parts.
    """
    options = MultipartParseOptions()
    options.max_body_part_count = _MOST_PARTS
    options.max_body_part_buffer_size = MOST_BYTES
    fields: dict[str, list[str]] = {}
    files: list[SentFile] = []
    boundary = falcon.parse_header(req.content_type or "")[1].get("boundary", "")
    try:
        stream: Any = body_stream(req, MOST_BYTES)
        form = MultipartForm(stream, boundary.encode("ascii"), req.content_length, options)
        for part in form:
            if part.filename is None:
                content = part.stream.read(_MOST_FIELD + 1)
                if len(content) > _MOST_FIELD:
                    raise InvalidInput("A field of the form is too long.", field=str(part.name)[:100])
                fields.setdefault(str(part.name), []).append(content.decode("utf-8"))
            elif part.filename:
                name = part.filename.replace("\\", "/").rpartition("/")[2]
                files.append(SentFile(name, part.content_type or None, part.get_data()))
    except falcon.HTTPPayloadTooLarge:
        raise PayloadTooLarge("The form is too large.", limit=MOST_BYTES) from None
    except (falcon.HTTPError, ValueError, UnicodeError):
        raise InvalidInput(
            "The form is not encoded as forms with files are, or has too many parts."
        ) from None
    return fields, files
