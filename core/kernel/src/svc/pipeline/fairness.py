"""Dear requests take turns: a client who sends many makes others wait for one of them, not for all.

Small requests are answered at once. A dear one waits for its turn before it begins, and where it pauses;
what it does in native threads runs a few at a time. In each wait the clients take turns, and who has left
meanwhile is left out. So many wait and no more: the next one is refused, and told when to come again.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import falcon

from svc.executor import current_executor
from svc.operations import Weight

if TYPE_CHECKING:
    from svc.operations import Call

__all__ = ["Responder", "dear_work", "in_turn", "work_for_caller"]

Responder = Callable[..., None]


def work_for_caller(call: Call) -> None:
    """Lets the work of a request count as its caller's: a user's, a key's, or an address's."""
    identity = call.identity_or_none
    current_executor().work_for(
        _network_of(call.client_address)
        if identity is None
        else (identity.user_id or identity.key_id or identity.name)
    )


def in_turn(responder: Responder, weight: Weight) -> Responder:
    """Returns a responder that waits for its turns, as its weight asks for."""
    if weight is Weight.SMALL:
        return responder

    def respond_in_turn(req: falcon.Request, resp: falcon.Response, **arguments: Any) -> None:
        with dear_work(req.context):  # type: ignore[arg-type]  # the pipeline's own
            responder(req, resp, **arguments)

    def respond_for_caller(req: falcon.Request, resp: falcon.Response, **arguments: Any) -> None:
        work_for_caller(req.context)  # type: ignore[arg-type]  # the pipeline's own
        responder(req, resp, **arguments)

    return wraps(responder)(respond_in_turn if weight is Weight.DEAR else respond_for_caller)


@contextmanager
def dear_work(call: Call) -> Iterator[None]:
    """Waits for the turn of a request, and lets the block do what costs much.

    Operations whose weight is ``DEAR`` have it around them; a responder that only sometimes does much takes
    it then. May be nested.

    Raises:
        RateLimited: too many requests of the same client wait for their turns.
        ServiceUnavailable: too many wait.
    """
    executor = current_executor()
    work_for_caller(call)
    executor.begin_dear_work()  # Ends here for one who has left meanwhile.
    try:
        yield
    finally:
        executor.end_dear_work()


def _network_of(address: str | None) -> str | None:
    """The part of an address that one client can't change at will: of IPv6, the first 64 bits."""
    if address is None or ":" not in address:
        return address
    try:
        return str(ipaddress.IPv6Network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
