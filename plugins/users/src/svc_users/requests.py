"""What the routes read from a request in common: settings, pages, and who acts."""

from __future__ import annotations

import falcon
from msgspec import UNSET

from svc.errors import InvalidInput
from svc.plugin import context_of, query_number, query_text
from svc_users.configuration import UsersConfiguration

__all__ = ["page_limit", "query_choice", "settings_of"]

DEFAULT_LIMIT = 1000
MAXIMUM_LIMIT = 10_000


def settings_of(req: falcon.Request) -> UsersConfiguration:
    """Returns the plugin's settings in the database that is served."""
    configuration = context_of(req).configuration
    return configuration if isinstance(configuration, UsersConfiguration) else UsersConfiguration()


def page_limit(req: falcon.Request) -> int:
    """Returns how many items a page shall have."""
    limit = query_number(req, "limit", DEFAULT_LIMIT, minimum=1, maximum=MAXIMUM_LIMIT)
    assert limit is not None
    return limit


def query_choice(req: falcon.Request, name: str) -> bool | None:
    """Returns a parameter that is true or false; None when it is absent."""
    text = query_text(req, name)
    if text is None:
        return None
    choice = {"true": True, "false": False}.get(text.lower(), UNSET)
    if choice is UNSET:
        raise InvalidInput(f"The parameter {name} is true or false.", field=name)
    return bool(choice)
