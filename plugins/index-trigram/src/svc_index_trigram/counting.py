"""Which documents are in so many of several bitmaps."""

from __future__ import annotations

from collections.abc import Sequence

from pyroaring import BitMap

__all__ = ["at_least"]


def at_least(least: int, bitmaps: Sequence[BitMap]) -> BitMap:
    """Returns the members of at least so many bitmaps; exact. Costs log2(n) operations for each of n.

    Args:
        least: one or more.
        bitmaps: any number.
    """
    if least > len(bitmaps):
        return BitMap()
    if least <= 1:
        return BitMap.union(*bitmaps) if len(bitmaps) > 1 else bitmaps[0].copy()
    # A member of ``least`` of them is in one of the rarest: of the others, ``least - 1``, it is in no more.
    bitmaps = sorted(bitmaps, key=len)
    possible = BitMap.union(*bitmaps[: len(bitmaps) - least + 1])
    digits: list[BitMap] = []
    # The numbers of all members are added up at once, a bitmap for each binary digit.
    for bitmap in bitmaps:
        carry = bitmap & possible
        for place, digit in enumerate(digits):
            digits[place] = digit ^ carry
            carry &= digit
            if not carry:
                break
        else:
            digits.append(carry)
    # Compares the sums with ``least``, from the highest digit: greater already, or equal so far.
    greater, equal = BitMap(), possible
    for place in reversed(range(max(len(digits), least.bit_length()))):
        digit = digits[place] if place < len(digits) else BitMap()
        if least >> place & 1:
            equal = equal & digit
        else:
            greater |= equal & digit
            equal = equal - digit
    return greater | equal
