"""What a client keeps for us: which version it has, how far, and for which rights that was told.

It is sealed. Nobody can make one of a version that they were not told of, and it tells nothing: that of the
same state is another one each time.
"""

from __future__ import annotations

import base64
import binascii
import secrets

from msgspec import Struct

from svc.errors import InvalidInput
from svc.plugin import EMPTY_ROOT, HASH_SIZE, Call, Hash, Path, hash_content, seal, unseal

__all__ = ["Progress", "bound_to", "foreign_token", "read_token", "token_of"]

_PURPOSE = "mirror"
_FORMAT = b"1"
_NONCE = 16
_END = b"."
_PADDED_TO = 1024


class Progress(Struct, frozen=True):
    """How far a client is from one version to another.

    Attributes:
        base: root that it had; that of nothing where it is told everything.
        target: root that it will have.
        place: path up to which it has been told; None once it has the target.
        bound: what the caller could see then: see ``bound_to``.
    """

    base: Hash
    target: Hash
    place: Path | None
    bound: Hash

    @property
    def is_whole(self) -> bool:
        """Whether everything is told, rather than what changed."""
        return self.base == EMPTY_ROOT


def bound_to(call: Call, globs: list[str] | None) -> Hash:
    """Returns a hash of what decides which paths a caller may see, and of the paths that it asks for."""
    identity = call.identity
    fingerprint: bytes | None = getattr(identity.rights, "fingerprint", None)
    if identity.rights is not None and fingerprint is None:
        # Rights that cannot say what they are may change with anything in the system.
        fingerprint = call.database.head().system_root
    is_share = identity.user_id is None
    rules = [(rule.glob, rule.flags) for rule in identity.rules]
    return hash_content(repr((identity.is_root, is_share, fingerprint, rules, globs)).encode())


def token_of(call: Call, progress: Progress) -> str:
    """Returns a progress as the client keeps it."""
    place = b"" if progress.place is None else "/".join(("", *progress.place)).encode()
    text = _FORMAT + secrets.token_bytes(_NONCE) + progress.bound + progress.base + progress.target + place
    # How long it is tells nothing of the place, where that is no longer than most.
    padded = text + b"/" * (-(len(text) + len(_END)) % _PADDED_TO) + _END
    sealed = seal(call.database.database_id, padded, _PURPOSE)
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode("ascii")


def read_token(call: Call, token: str) -> Progress:
    """Returns the progress that a token stands for; InvalidInput where it is none of this database."""
    try:
        sealed = base64.b64decode(token.encode("ascii") + b"==", altchars=b"-_")
    except (ValueError, binascii.Error):
        raise foreign_token() from None
    text = unseal(call.database.database_id, sealed, _PURPOSE)
    if text is None or not text.startswith(_FORMAT) or not text.endswith(_END):
        raise foreign_token()
    parts = text[len(_FORMAT) + _NONCE : -len(_END)]
    bound, base, target = (parts[at : at + HASH_SIZE] for at in range(0, 3 * HASH_SIZE, HASH_SIZE))
    place = parts[3 * HASH_SIZE :].rstrip(b"/").decode()
    return Progress(base, target, tuple(place.split("/")[1:]) if place else None, bound)


def foreign_token() -> InvalidInput:
    """Returns the error for a token that is none of this database."""
    return InvalidInput("The token is not one that this database gave; ask without one.", field="since")
