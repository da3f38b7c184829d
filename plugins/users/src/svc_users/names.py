"""What names may be, when two of them are the same, and what their files in the system tree are called.

Names come from people, so a file is never called what they say: its name is a hash of the name's normal form.
"""

from __future__ import annotations

import re
import unicodedata
import uuid
from functools import lru_cache

from svc.errors import InvalidInput
from svc.plugin import ROOT_USER_ID, Path, format_path, hash_content

__all__ = [
    "MAXIMUM_NAME",
    "MAXIMUM_TAGS",
    "OWN_GROUP_PREFIX",
    "ROOT_NAME",
    "checked_email",
    "checked_group_name",
    "checked_tags",
    "checked_username",
    "name_key",
    "normal_text",
    "own_group",
    "path_key",
    "tag_key",
    "user_id_of",
    "user_of_own_group",
]

ROOT_NAME = "root"
OWN_GROUP_PREFIX = "user:"
MAXIMUM_NAME = 200
MAXIMUM_TAGS = 100

_MAXIMUM_TAG = 100
_MAXIMUM_EMAIL = 254
_KEY_DIGITS = 32
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


def normal_text(text: str) -> str:
    """Returns a text in Unicode normalization form C, as names and tags are stored."""
    return unicodedata.normalize("NFC", text)


@lru_cache(maxsize=65_536)
def name_key(name: str) -> str:
    """Returns the file name of a username or a group's name: 32 hex digits, the same for all spellings.

    Spellings are the same that differ in case or in the Unicode normalization form.
    """
    return _key(normal_text(normal_text(name).casefold()))


@lru_cache(maxsize=4096)
def tag_key(tag: str) -> str:
    """Returns the file name of a tag. Case matters in tags."""
    return _key(normal_text(tag))


def path_key(path: Path) -> str:
    """Returns the file name of a path of the user tree."""
    return _key(format_path(path))


def own_group(user_id: str) -> str:
    """Returns the name of the group whose only member is a user: ``user:<id>``."""
    return OWN_GROUP_PREFIX + user_id


def user_of_own_group(group: str) -> str | None:
    """Returns the id of the user whose own group has this name; None for every other group."""
    if not group.startswith(OWN_GROUP_PREFIX):
        return None
    return user_id_of(group.removeprefix(OWN_GROUP_PREFIX))


def user_id_of(text: str) -> str | None:
    """Returns a user id in its one spelling, or None when the text is no UUID."""
    # uuid.UUID takes braces, prefixes and digits without hyphens too.
    if len(text) != len(ROOT_USER_ID):
        return None
    try:
        found = str(uuid.UUID(text))
    except ValueError:
        return None
    return found if found == text.lower() else None


def checked_username(name: str, field: str = "username") -> str:
    """Returns a new username in Unicode normalization form C.

    Raises:
        InvalidInput: it is empty, too long, has control characters or blanks at its ends, or could be taken
            for a user id or for the name of a user's own group.
    """
    name = _checked_name(name, field, "A username")
    if user_id_of(name) is not None or name.casefold().startswith(OWN_GROUP_PREFIX):
        raise InvalidInput(
            f"A username is no UUID and does not begin with {OWN_GROUP_PREFIX!r}.", field=field
        )
    return name


def checked_group_name(name: str, field: str = "name") -> str:
    """Returns the name of a new group in Unicode normalization form C.

    Raises:
        InvalidInput: as for a username; it holds a slash; or it begins with ``user:``, which is a user's own.
    """
    name = _checked_name(name, field, "A group's name")
    if "/" in name or name in (".", ".."):
        raise InvalidInput("A group's name holds no slash, and is not '.' or '..'.", field=field)
    if name.casefold().startswith(OWN_GROUP_PREFIX):
        raise InvalidInput(
            f"A name that begins with {OWN_GROUP_PREFIX!r} is that of a user's own group, and is taken.",
            field=field,
        )
    return name


def checked_tags(tags: list[str] | tuple[str, ...], field: str = "tags") -> tuple[str, ...]:
    """Returns tags in Unicode normalization form C, sorted, each once.

    Raises:
        InvalidInput: they are too many, or one is empty, too long or has control characters.
    """
    if len(tags) > MAXIMUM_TAGS:
        raise InvalidInput(f"There may be at most {MAXIMUM_TAGS} tags.", field=field, limit=MAXIMUM_TAGS)
    return tuple(sorted({_checked_name(tag, field, "A tag", _MAXIMUM_TAG) for tag in tags}))


def checked_email(email: str | None, field: str = "email") -> str | None:
    """Returns an email address in Unicode normalization form C; None for none."""
    if email is None:
        return None
    email = _checked_name(email, field, "An email address", _MAXIMUM_EMAIL)
    if _EMAIL.fullmatch(email) is None:
        raise InvalidInput("An email address is of the form name@host.", field=field)
    return email


def _checked_name(name: str, field: str, what: str, limit: int = MAXIMUM_NAME) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} must be valid Unicode text.", field=field) from None
    name = normal_text(name)
    if not 1 <= len(name) <= limit or not name.isprintable() or name != name.strip():
        raise InvalidInput(
            f"{what} has 1 to {limit} characters, no control characters, and no blanks at its ends.",
            field=field,
            limit=limit,
        )
    return name


def _key(text: str) -> str:
    # Text that is no Unicode has no file; it gets the name of one that nobody can make.
    return hash_content(text.encode("utf-8", "surrogatepass")).hex()[:_KEY_DIGITS]
