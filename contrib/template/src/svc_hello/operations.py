"""What the plugin can do, declared once: route, command and the call of a program follow from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from svc.plugin import Weight, operation, requires_identity

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["Greeting", "greet_by_name"]


class Greeting(Struct, frozen=True):
    """A greeting, and how many transactions the caller has made in this database."""

    greeting: str
    transactions: int


@operation("GET", "/hello/{name}", requires_identity, weight=Weight.SMALL)
def greet_by_name(call: Call, name: str) -> Greeting:
    """Greets by name, in the words of the database."""
    from svc_hello.activity import transactions_of
    from svc_hello.greeting import greet

    return Greeting(
        greet(call.configuration.greeting, name),
        transactions_of(call.database, call.identity.user_id or ""),
    )
