"""Terms of values: bytes that sort as the values do.

A byte for the kind, then what tells values of that kind apart. Whole and floating numbers share one order and
are exact at any size: 2^53 + 1 has a term of its own, and 1 and 1.0 have the same.
"""

from __future__ import annotations

import math

from svc_query.api import MAXIMUM_TERM_BYTES, Value

__all__ = [
    "NULL",
    "NUMBERS",
    "STRINGS",
    "after",
    "encode_number",
    "encode_string",
    "encode_value",
    "is_exact",
]

NULL = b"\x10"
FALSE = b"\x20"
TRUE = b"\x21"
NOT_A_NUMBER = b"\x2f"
NEGATIVE_INFINITY = b"\x30"
NEGATIVE = b"\x31"
ZERO = b"\x32"
POSITIVE = b"\x33"
POSITIVE_INFINITY = b"\x34"
STRING = b"\x40"
ARRAY = b"\x50"

NUMBERS = (NEGATIVE_INFINITY, b"\x35")
"""All numbers: from, and up to but without."""
STRINGS = (STRING, b"\x41")
"""All strings: from, and up to but without."""

_BIAS = 2_048
_LARGE_EXPONENT = 0xFFFF
_COMPLEMENT = bytes(255 - byte for byte in range(256))


def encode_value(value: Value) -> bytes:
    """Returns the term of a value, cut to the longest that terms may have.

    What no operator compares has a term too, so that ``ne`` finds its documents: arrays share one, and so
    does what is not a number.
    """
    if isinstance(value, str):
        return encode_string(value)
    if value is None:
        return NULL
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, (int, float)):
        return encode_number(value)
    return ARRAY


def encode_string(text: str) -> bytes:
    """Returns the term of a string: UTF-8, which sorts by code points."""
    return (STRING + text.encode("utf-8", "surrogatepass"))[:MAXIMUM_TERM_BYTES]


def encode_number(number: float) -> bytes:
    """Returns the term of a number.

    A positive number is m * 2^e with m from 0.5 up to but without 1. Two bytes have e + 2048, or FF FF and
    four more bytes e itself where that does not fit; then come the bits of m, highest first, without zero
    bytes at the end. Of a negative number the absolute value is written so that no term is the beginning of
    another (eight bytes at a time, and one that says whether more follow), and all bits are turned over.
    """
    if isinstance(number, int):
        exponent = number.bit_length()
        size = (exponent + 7) >> 3
        bits = (abs(number) << (8 * size - exponent)).to_bytes(size, "big").rstrip(b"\0")
    elif math.isfinite(number):
        mantissa, exponent = math.frexp(abs(number))
        bits = int(mantissa * (1 << 56)).to_bytes(7, "big").rstrip(b"\0")
    elif math.isnan(number):
        return NOT_A_NUMBER
    else:
        return POSITIVE_INFINITY if number > 0 else NEGATIVE_INFINITY
    if not bits:
        return ZERO
    scale = exponent + _BIAS
    head = scale.to_bytes(2, "big") if scale < _LARGE_EXPONENT else b"\xff\xff" + exponent.to_bytes(4, "big")
    if number > 0:
        return (POSITIVE + head + bits)[:MAXIMUM_TERM_BYTES]
    return (NEGATIVE + (head + _grouped(bits)).translate(_COMPLEMENT))[:MAXIMUM_TERM_BYTES]


def is_exact(term: bytes) -> bool:
    """Says whether only equal values have this term: it was not cut."""
    return len(term) < MAXIMUM_TERM_BYTES


def after(term: bytes) -> bytes:
    """Returns the first term behind one."""
    return term + b"\0"


def _grouped(bits: bytes) -> bytes:
    padded = bits.ljust(-(-len(bits) // 8) * 8, b"\0")
    last = len(padded) - 8
    return b"".join(
        padded[start : start + 8] + (b"\0" if start == last else b"\x01")
        for start in range(0, len(padded), 8)
    )
