"""What a greeting is."""

from __future__ import annotations

from svc.errors import InvalidInput

__all__ = ["MAXIMUM_NAME_LENGTH", "greet"]

MAXIMUM_NAME_LENGTH = 100


def greet(greeting: str, name: str) -> str:
    """Returns a greeting.

    Args:
        greeting: the word before the name.
        name: 1 to 100 printable characters.

    Raises:
        InvalidInput: the name is not of that form.
    """
    if not name.strip() or len(name) > MAXIMUM_NAME_LENGTH or not name.isprintable():
        raise InvalidInput(
            f"A name has 1 to {MAXIMUM_NAME_LENGTH} printable characters.",
            field="name",
            limit=MAXIMUM_NAME_LENGTH,
        )
    return f"{greeting}, {name}!"
