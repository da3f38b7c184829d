"""What the page after a redirect says, in a cookie that only this server can have made."""

from __future__ import annotations

import base64
import binascii

import falcon
import msgspec

from svc.plugin import SvcRequest, read_cookie, seal, unseal, write_cookie
from svc_portal.api import Message

__all__ = ["keep_message", "take_message"]

_COOKIE = "svc_message"
_LIFETIME_S = 60
_PURPOSE = "portal"
_MOST_BYTES = 2_900
"""A browser keeps 4096 bytes of a cookie; base64 adds a third."""


def keep_message(req: SvcRequest, resp: falcon.Response, message: Message) -> None:
    """Lets the next page say something. What is too long to take back by a form loses that."""
    content = msgspec.json.encode(message)
    if len(content) > _MOST_BYTES:
        content = msgspec.json.encode(Message(message.text[:500], is_error=message.is_error))
    sealed = seal(req.context.database.database_id, content, _PURPOSE)
    text = base64.urlsafe_b64encode(sealed).decode("ascii").rstrip("=")
    write_cookie(req, resp, _COOKIE, text, _LIFETIME_S)


def take_message(req: SvcRequest, resp: falcon.Response) -> Message | None:
    """Returns what this page is to say, once; None when nothing."""
    text = read_cookie(req, _COOKIE)
    if text is None:
        return None
    write_cookie(req, resp, _COOKIE, "", 0)
    try:
        sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        content = unseal(req.context.database.database_id, sealed, _PURPOSE)
        return None if content is None else msgspec.json.decode(content, type=Message)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
