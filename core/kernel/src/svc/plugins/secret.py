"""Settings that must never be shown: passwords, keys, tokens."""

from __future__ import annotations

import hmac
from typing import Any

__all__ = ["HIDDEN", "Secret", "decode_secret", "encode_hidden", "encode_revealed"]

HIDDEN = "********"


class Secret:
    """The type of a configuration field that is never shown.

    Its text and representation are stars, so that a configuration may stand in a log line. Only the plugin
    itself calls ``reveal``.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return f"Secret('{HIDDEN}')"

    def __str__(self) -> str:
        return HIDDEN


def decode_secret(kind: type, value: Any) -> Any:
    """The ``dec_hook`` that reads secrets from plain text; msgspec adds the place to what it raises."""
    if kind is not Secret:
        raise TypeError(f"The type {kind.__name__} is not one that settings can have")
    if not isinstance(value, str):
        raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
    return Secret(value)


def encode_revealed(value: Any) -> Any:
    """The ``enc_hook`` that writes secrets as they are, for the record in the system tree."""
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"Settings cannot hold a value of type {type(value).__name__}.")


def encode_hidden(value: Any) -> Any:
    """The ``enc_hook`` that writes stars for a secret, and an empty text for an empty one."""
    if isinstance(value, Secret):
        return HIDDEN if value else ""
    raise TypeError(f"Settings cannot hold a value of type {type(value).__name__}.")
