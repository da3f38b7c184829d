"""``/auth/signing-key``: signing with a new key, by hand."""

from __future__ import annotations

import falcon
import msgspec

from svc.plugin import context_of, has_body, read_json, requires_root, send_json
from svc_auth_self.settings import settings_of
from svc_auth_self.sign_in import token_mode
from svc_auth_self.signing import rotate_now

__all__ = ["SigningKeyResource"]


class RotateBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body; it may be left out."""

    end_tokens: bool = False


class SigningKeyResource:
    """The key that signs tokens."""

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes a new one. Tokens go on being good, but with ``end_tokens``."""
        context = context_of(req)
        token_mode(context)
        body = read_json(req, RotateBody) if has_body(req) else RotateBody()
        lifetime = settings_of(context.database).jwt_expiry
        kid = rotate_now(context.database, lifetime, end_tokens=body.end_tokens, actor=context.actor)
        send_json(resp, {"kid": kid}, 201)
