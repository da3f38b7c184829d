"""What is sealed opens again, for its purpose and its database alone, and tells nothing."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from svc.plugin import seal, unseal

KEY, OTHER = b"a" * 16, b"b" * 16
CONTENTS = st.binary(max_size=300).filter(lambda content: not content.endswith(b"\0"))


@given(content=CONTENTS, at=st.integers(0), bit=st.integers(0, 7))
@example(content=b"", at=0, bit=0)
def test_what_is_sealed_opens_unless_anything_of_it_is_another(content: bytes, at: int, bit: int) -> None:
    sealed = seal(KEY, content, "files")
    assert unseal(KEY, sealed, "files") == content
    assert unseal(KEY, sealed, "sharing") is None
    assert unseal(OTHER, sealed, "files") is None
    changed = bytearray(sealed)
    changed[at % len(sealed)] ^= 1 << bit
    assert unseal(KEY, bytes(changed), "files") is None
    assert unseal(KEY, sealed[:-1], "files") is None


@given(anything=st.binary(max_size=100))
def test_bytes_that_nobody_sealed_do_not_open(anything: bytes) -> None:
    assert unseal(KEY, anything, "files") is None


def test_the_length_tells_little_and_the_same_content_looks_the_same() -> None:
    assert {len(seal(KEY, b"x" * size, "files")) for size in range(1, 65)} == {16 + 64}
    assert seal(KEY, b"x", "files") == seal(KEY, b"x", "files")
    assert seal(KEY, b"x", "files")[16:] != seal(KEY, b"y", "files")[16:]
