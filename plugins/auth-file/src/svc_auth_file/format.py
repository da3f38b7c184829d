"""The file of users: TOML in, users and their keys out, or a list of all that is wrong with it.

Nothing is guessed. A name that the format does not know, a value of another type, or two users of one name
are errors, and each says where it is: the line where the file is no TOML, else the table.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import msgspec

from svc.errors import InvalidInput
from svc.plugin import ROOT_USER_ID, ScopedRule
from svc_auth_file.keys import is_key_hash, key_id_of
from svc_auth_self.api import DAY_MS, LONGEST_KEY_DAYS, ROOT_ACCOUNT, check_rules
from svc_users.api import checked_email, checked_group_name, checked_tags, checked_username, name_key

__all__ = ["BadFile", "FileKey", "FileUser", "UsersFile", "parse_users", "user_id_of"]

_NAMESPACE = uuid.UUID("6d1c3c0e-52f0-5a3c-9d0f-5b0c7c3f3a11")
_MOST_PROBLEMS = 20
_LONGEST_LABEL = 200

_MOST_PARTS = 2  # as in [[users.keys]]
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_STRINGS_AND_DEEP_KEYS = re.compile(
    # Dotted keys, which begin where none of their parts is a part of something else.
    rf"""(?:^|(?<=[\s\[{{,]))(?P<deep>(?:{_PART}[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}})"""
    # Strings, also those that do not end, and comments: what is in them is no key.
    r"""|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|\#[^\n]*+""",
    re.MULTILINE,
)
"""What is looked for first: the time and memory of tomllib grow with the square of the parts of a key."""

T = TypeVar("T")


class BadFile(Exception):
    """The file can't be used.

    Args:
        problems: what is wrong, a sentence each, with the line or the table.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class FileKey:
    """A key of a user.

    Attributes:
        key_id: UUID; follows from the hash.
        user_id: whose it is.
        hash: hash of its text, see ``keys``.
        label: what people call it.
        expires_ms: when it ends, Unix milliseconds.
        rules: rules of a scoped key; empty: no restriction.
    """

    key_id: str
    user_id: str
    hash: str = field(repr=False)
    label: str
    expires_ms: int
    rules: tuple[ScopedRule, ...] = ()


@dataclass(frozen=True, slots=True)
class FileUser:
    """A user of the file.

    Attributes:
        user_id: UUID as lower-case text.
        username: unique in all spellings.
        email: where mail goes, if known.
        is_root: whether the user may do everything.
        is_active: whether the user may do anything.
        groups: names of groups, without the user's own.
        tags: groups of the database that name one of them have the user as a member.
        keys: the user's keys.
    """

    user_id: str
    username: str
    email: str | None
    is_root: bool
    is_active: bool
    groups: frozenset[str]
    tags: tuple[str, ...]
    keys: tuple[FileKey, ...]


@dataclass(frozen=True, slots=True, eq=False)
class UsersFile:
    """The users of a file, found by what they are asked for.

    Attributes:
        users: in the order of the file.
        by_id: by user id.
        by_name: by the key of their name, see ``named``.
        key_by_hash: keys by their hash.
        key_by_id: keys by their id.
    """

    users: tuple[FileUser, ...] = ()
    by_id: Mapping[str, FileUser] = field(default_factory=dict)
    by_name: Mapping[str, FileUser] = field(default_factory=dict)
    key_by_hash: Mapping[str, FileKey] = field(default_factory=dict)
    key_by_id: Mapping[str, FileKey] = field(default_factory=dict)

    def named(self, username: str) -> FileUser | None:
        """Returns the user of a name, in any spelling of it."""
        return self.by_name.get(name_key(username))


def user_id_of(username: str) -> str:
    """Returns the id of a user who is given none: it follows from the name, in any spelling of it."""
    composed = unicodedata.normalize("NFC", username)
    normal = unicodedata.normalize("NFC", composed.casefold())
    return str(uuid.uuid5(_NAMESPACE, normal))


def parse_users(content: bytes, now_ms: int) -> UsersFile:
    """Returns the users that a file's content names. Takes a second for some ten thousand.

    Args:
        content: the bytes of the file.
        now_ms: the present time in Unix milliseconds, from which the longest life of a key counts.

    Raises:
        BadFile: something is wrong; up to 20 problems are listed.
    """
    document = _toml(content)
    problems: list[str] = []
    unknown = sorted(set(document) - {"users"})
    problems += [f"{name!r} is nothing that the file may hold; its tables are [[users]]." for name in unknown]
    tables = document.get("users", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadFile(*problems, "users is written as tables: [[users]].")
    if not tables and not problems:
        raise BadFile("It names no user: there is no table [[users]].")
    reader = _Reader(now_ms, problems)
    users = [user for number, table in enumerate(tables, 1) if (user := reader.user(number, table))]
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        raise BadFile(*problems[:_MOST_PROBLEMS], *([f"And {more} more problems."] if more > 0 else []))
    keys = [key for user in users for key in user.keys]
    return UsersFile(
        tuple(users),
        {user.user_id: user for user in users},
        {name_key(user.username): user for user in users},
        {key.hash: key for key in keys},
        {key.key_id: key for key in keys},
    )


class _UserTable(msgspec.Struct, forbid_unknown_fields=True):
    """The form of ``[[users]]``."""

    username: str
    user_id: str | None = None
    email: str | None = None
    root: bool = False
    active: bool = True
    groups: list[str] = []
    tags: list[str] = []
    keys: list[dict[str, Any]] = []


class _KeyTable(msgspec.Struct, forbid_unknown_fields=True):
    """The form of ``[[users.keys]]``."""

    hash: str
    expires: Any
    label: str = ""
    rules: list[dict[str, str]] = []


class _Reader:
    """Reads the tables one by one, and notes what is wrong with each.

    Args:
        now_ms: the present time.
        problems: where problems are added.
    """

    def __init__(self, now_ms: int, problems: list[str]) -> None:
        self._now_ms = now_ms
        self._problems = problems
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._hashes: dict[str, str] = {}

    def user(self, number: int, table: Mapping[str, Any]) -> FileUser | None:
        """The user of a table; None when something is wrong with it."""
        shown = table.get("username")
        place = f"[[users]] {number}" + (f" ({shown!r})" if isinstance(shown, str) else "")
        known = len(self._problems)
        form = self._form(table, _UserTable, place)
        if form is None:
            return None
        username = self._checked(place, "username", _username, form.username) or form.username
        user_id = self._checked(place, "user_id", _user_id, form.user_id, username) or ""
        email = self._checked(place, "email", checked_email, form.email)
        groups = self._checked(place, "groups", _group_names, form.groups) or frozenset()
        tags = self._checked(place, "tags", checked_tags, form.tags) or ()
        is_new = self._claim(self._names, name_key(username), f"{place}: username", place)
        if user_id and is_new:
            self._claim(self._ids, user_id, f"{place}: user_id", place)
        keys = tuple(self._keys(place, user_id, form.keys))
        if len(self._problems) > known:
            return None
        return FileUser(user_id, username, email, form.root, form.active, groups, tags, keys)

    def _keys(self, place: str, user_id: str, tables: list[dict[str, Any]]) -> Iterator[FileKey]:
        for number, table in enumerate(tables, 1):
            shown = table.get("label")
            at = f"{place}, [[users.keys]] {number}" + (f" ({shown!r})" if isinstance(shown, str) else "")
            form = self._form(table, _KeyTable, at)
            if form is None:
                continue
            self._checked(at, "label", _check_label, form.label)
            expires_ms = self._checked(at, "expires", self._expiry, form.expires)
            rules = self._checked(at, "rules", check_rules, form.rules) or ()
            if not is_key_hash(form.hash):
                self._problems.append(
                    f"{at}: hash: It is 'blake3:' and 64 hex digits, as 'svc auth-file new-key' prints it."
                )
                continue
            self._claim(self._hashes, form.hash, f"{at}: hash", at)
            if expires_ms is not None:
                scoped = tuple(ScopedRule(glob, flags) for rule in rules for glob, flags in rule.items())
                yield FileKey(key_id_of(form.hash), user_id, form.hash, form.label, expires_ms, scoped)

    def _form(self, table: Mapping[str, Any], form: type[T], place: str) -> T | None:
        try:
            return msgspec.convert(table, form, strict=True)
        except msgspec.ValidationError as error:
            message, _, where = str(error).partition(" - at `$")
            at = where.rstrip("`").lstrip(".")
            self._problems.append(f"{place}: {at}: {message}." if at else f"{place}: {message}.")
            return None

    def _checked(self, place: str, name: str, check: Callable[..., T], *values: Any) -> T | None:
        """What a check makes of values; None, and a problem more, when they are not in order."""
        try:
            return check(*values)
        except InvalidInput as error:
            self._problems.append(f"{place}: {error.details.get('field', name)}: {error.message}")
            return None

    def _claim(self, taken: dict[str, str], value: str, what: str, place: str) -> bool:
        """Notes that something stands at a place; False, and a problem more, when it stood elsewhere too."""
        other = taken.setdefault(value, place)
        if other != place:
            self._problems.append(f"{what}: {other} has the same.")
        return other == place

    def _expiry(self, value: Any) -> int:
        if isinstance(value, datetime):
            if value.tzinfo is None:
                raise InvalidInput("A time needs its offset, such as 2027-05-01T12:00:00Z.")
            ends_ms = int(value.timestamp() * 1000)
        elif isinstance(value, date):
            # The key is good on that day, and not on the next one.
            begins = datetime(value.year, value.month, value.day, tzinfo=UTC)
            ends_ms = int(begins.timestamp() * 1000) + DAY_MS
        else:
            raise InvalidInput(
                "It is a date, such as 2027-05-01 (without quotes), or a time with its offset."
            )
        if ends_ms > self._now_ms + (LONGEST_KEY_DAYS + 1) * DAY_MS:
            raise InvalidInput(f"A key ends within {LONGEST_KEY_DAYS} days from now.")
        return ends_ms


def _toml(content: bytes) -> dict[str, Any]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadFile(f"It is not UTF-8 (at line {line}).") from None
    if not text.strip():
        raise BadFile("It is empty.")
    for found in _STRINGS_AND_DEEP_KEYS.finditer(text):
        if found.lastgroup == "deep":
            line = text.count("\n", 0, found.start()) + 1
            raise BadFile(f"A key has more than {_MOST_PARTS} parts (at line {line}).")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadFile(f"It is not TOML: {error}.") from None
    except (RecursionError, ValueError, OverflowError):
        raise BadFile(
            "It is not TOML: it is nested too deeply, or a number or date in it is out of range."
        ) from None


def _username(name: str) -> str:
    if name_key(name) == name_key(ROOT_ACCOUNT.username):
        raise InvalidInput("This is the name of root itself; 'root = true' lets a user do everything.")
    return checked_username(name)


def _user_id(given: str | None, username: str) -> str:
    if given is None:
        return user_id_of(username)
    try:
        found = str(uuid.UUID(given))
    except ValueError:
        found = ""
    if found != given.lower():
        raise InvalidInput("It is a UUID, such as 0198f9a2-6d5c-7b11-8000-2d1f3c5e7a90.")
    if found == ROOT_USER_ID:
        raise InvalidInput("The nil UUID is root itself; 'root = true' lets a user do everything.")
    return found


def _group_names(names: list[str]) -> frozenset[str]:
    return frozenset(checked_group_name(name, "groups") for name in names)


def _check_label(label: str) -> None:
    if len(label) > _LONGEST_LABEL or (label and not label.isprintable()):
        raise InvalidInput(f"A label is one line of at most {_LONGEST_LABEL} characters.")
