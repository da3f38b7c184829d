"""What the operations on shares and links take and answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from svc.plugin import Confidential, Page

__all__ = [
    "MOST_ITEMS",
    "EndedShares",
    "LinkKey",
    "LinkPage",
    "LinkQuery",
    "NewLink",
    "NewShareLink",
    "NewShares",
    "OldShares",
    "OpenedLink",
    "PageQuery",
    "RevokedLink",
    "Share",
    "ShareLink",
    "SharePage",
    "ShareQuery",
    "SharedFilesQuery",
    "SharedPath",
    "SharedPathPage",
    "SharedPaths",
    "SharedWith",
]

MOST_ITEMS = 1_000
"""Items of a part of a list, at most."""

Flags = Annotated[str, Meta(description="Eight letters of crudlify, each in its place, or hyphens.")]
Time = Annotated[int, Meta(description="Unix milliseconds.")]
Maker = Annotated[str | None, Meta(description="Id of the user who made it, if known.")]
Users = Annotated[list[str], Meta(description="Ids or usernames.")]


class PageQuery(Struct, frozen=True, kw_only=True):
    """Which part of a list is asked for."""

    limit: Annotated[int, Meta(ge=1, le=MOST_ITEMS, description="Most items of the part.")] = 100
    after: Annotated[str | None, Meta(description="The next_cursor of the part before.")] = None


class OldShares(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths that are shared no more with users and groups. They need not exist any more."""

    paths: list[str]
    users: Users = []
    groups: list[str] = []


class NewShares(OldShares, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths that are shared with users and groups."""

    permissions: Flags


class SharedWith(Struct, frozen=True):
    """A user with whom something was shared."""

    user_id: str
    username: str | None


class SharedPaths(Struct, frozen=True, kw_only=True):
    """What was shared, and with whom."""

    paths: list[str]
    users: list[SharedWith]
    groups: list[str]
    permissions: Flags
    shared_at: Time


class EndedShares(Struct, frozen=True):
    """How many shares were taken back."""

    removed: int
    paths: list[str]


class ShareQuery(PageQuery, frozen=True, kw_only=True):
    """Whose shares are listed."""

    path: Annotated[str, Meta(description="Shares that hang on this path itself.")]


class Share(Struct, frozen=True, kw_only=True):
    """What a user (``user_id``, ``username``) or a ``group`` may do to a path, and who shared it."""

    grant_id: str
    path: str
    user_id: str | None
    username: str | None
    group: str | None
    permissions: Flags
    deny: Flags
    path_pattern: str | None
    created_at: Time
    created_by: Maker


class SharePage(Page[Share], frozen=True):
    """A part of the shares of a path."""

    path: str
    shares: list[Share]


class SharedPath(Struct, frozen=True, kw_only=True):
    """A path that is shared with the caller, by the grant of a group, and what the caller may do to it."""

    path: str
    entry_type: int | None
    effective_permissions: Flags
    permissions: Flags
    group: str
    path_pattern: str | None
    shared_at: Time
    shared_by: Maker


class SharedPathPage(Page[SharedPath], frozen=True):
    """A part of what is shared with the caller."""

    paths: list[SharedPath] = field(name="items")


class NewLink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A link to be made. What is left out is as the settings say."""

    paths: list[str]
    permissions: Flags = "-r--l---"
    expires_in_days: Annotated[int | None, Meta(description="1 to 3,650.")] = None
    base_url: Annotated[str | None, Meta(description="What its URL begins with.")] = None


class NewShareLink(Confidential, frozen=True, kw_only=True):
    """A link that was just made: ``url`` and ``token`` hold its key, which is not shown again."""

    shown = ("key_id", "paths")

    url: str
    token: str
    key_id: str
    permissions: Flags
    expires_at: Time
    paths: list[str]


class LinkQuery(PageQuery, frozen=True, kw_only=True):
    """Which links are listed."""

    path: Annotated[str | None, Meta(description="Those that name this path itself.")] = None


class ShareLink(Struct, frozen=True, kw_only=True):
    """A link that works."""

    key_id: str
    paths: list[str]
    permissions: Flags
    created_at: Time
    created_by: Maker
    expires_at: Time


class LinkPage(Page[ShareLink], frozen=True):
    """A part of the links that work."""

    links: list[ShareLink]


class RevokedLink(Struct, frozen=True):
    """A link was ended."""

    revoked: Literal[True]
    key_id: str


class LinkKey(Confidential, frozen=True, forbid_unknown_fields=True):
    """The key of a link. Its representation does not show it."""

    key: str


class OpenedLink(Struct, frozen=True):
    """A browser was signed in, for ``expires_in`` seconds; ``next`` is the page to go on to."""

    expires_in: int
    next: str


class SharedFilesQuery(Struct, frozen=True):
    """Which part of a directory a page shows."""

    after: Annotated[str | None, Meta(description="The name behind which it begins.")] = None
