"""JSON in and out: msgspec does the work, and nothing a client sends can make it fail with a 500."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from svc.errors import InvalidInput

__all__ = ["JSON_MEDIA_TYPE", "decode_json", "encode_json", "json_body"]

JSON_MEDIA_TYPE = "application/json"

T = TypeVar("T")


def encode_json(value: Any) -> bytes:
    """Returns ``value`` as JSON.

    Args:
        value: built-in containers, msgspec Structs, dataclasses; what JSON has no form for becomes its text.
    """
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        # A lone surrogate: JSON can spell it (as an escape), UTF-8 can't.
        plain = msgspec.to_builtins(value, enc_hook=str)
        return json.dumps(plain, ensure_ascii=True, default=str).encode("ascii")


def json_body(value: Any) -> bytes:
    """Returns ``value`` as the body of an answer: JSON and a newline, for terminals."""
    return encode_json(value) + b"\n"


def decode_json(body: bytes, form: type[T]) -> T:
    """Returns the value that ``body`` spells, checked against ``form``; InvalidInput names the ``field``."""
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.ValidationError as error:
        message, field = _explain(str(error))
        raise (InvalidInput(message, field=field) if field else InvalidInput(message)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidInput("The body is not valid JSON.") from None
    except RecursionError:
        raise InvalidInput("The JSON body nests too deep.") from None


def _explain(message: str) -> tuple[str, str | None]:
    """Splits msgspec's "what - at `$.where`" into a sentence and the member's name."""
    what, separator, where = message.partition(" - at `")
    field = where.rstrip("`").removeprefix("$").removeprefix(".") if separator else ""
    sentence = f"The body does not have the required form: {what[:1].lower()}{what[1:]}"
    return (f"{sentence} (at {field})." if field else f"{sentence}."), field or None


_ENCODER = msgspec.json.Encoder(enc_hook=str)
