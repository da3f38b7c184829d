"""The plugin's route."""

from __future__ import annotations

import falcon

from svc.plugin import SvcRequest, requires_identity, send_json
from svc_hello.activity import transactions_of
from svc_hello.greeting import greet

__all__ = ["HelloResource"]


class HelloResource:
    """Greets by name. Stateless: one object answers all requests."""

    @requires_identity
    def on_get(self, req: SvcRequest, resp: falcon.Response, name: str) -> None:
        """Answers a greeting, and how many transactions the caller has made in this database."""
        context = req.context
        body = {
            "greeting": greet(context.configuration.greeting, name),
            "transactions": transactions_of(context.database, context.identity.user_id or ""),
        }
        send_json(resp, body)
