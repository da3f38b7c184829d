"""The page of keys: everybody's own, for root all; a new one is shown once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_portal.api import Act, Answer, Message, PortalPage, Shown

from svc.errors import InvalidInput
from svc_auth_self.mode import TokenAuthMode
from svc_auth_self.models import LONGEST_KEY_DAYS, ApiKey, KeyQuery, NewApiKey, NewKey
from svc_auth_self.operations import (
    create_any_key,
    create_key,
    list_all_keys,
    list_keys,
    revoke_any_key,
    revoke_key,
)

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["KeysPage"]

ROWS = 100
_LETTERS = "crudlify"


class KeysPage(PortalPage):
    """The keys that the reader may see."""

    name: ClassVar[str] = "keys"
    path: ClassVar[str] = "keys"
    title: ClassVar[str] = "Keys"
    place: ClassVar[int | None] = 55

    def is_for(self, request: PortalRequest) -> bool:
        """Everybody, where the auth mode has our keys."""
        return isinstance(request.context.auth_mode, TokenAuthMode)

    def show(self, request: PortalRequest) -> Answer:
        """A part of the list, and the form of a new one."""
        return _page(request)

    def acts(self) -> Mapping[str, Act]:
        """Makes a key, or revokes one."""
        return {"make": lambda request: _page(request, made=_make(request)), "revoke": _revoke}

    def refused(self, request: PortalRequest, message: Message) -> Answer:
        """What fails is said on the page, whose form keeps what it has."""
        return _page(request, message=message)


def _page(request: PortalRequest, *, made: NewApiKey | None = None, message: Message | None = None) -> Answer:
    is_root = request.identity.is_unrestricted_root
    user_id = request.query.get("user").strip() if is_root else ""
    query = KeyQuery(limit=ROWS, after=request.query.get("after") or None, user_id=user_id or None)
    page = request.call(list_all_keys if is_root else list_keys, query)
    said = {} if made is not None else _said(request)
    values: dict[str, Any] = {
        "keys": [_row(request, one) for one in page.keys],
        "next_url": request.url("keys", {"user": user_id, "after": page.next_cursor})
        if page.has_more
        else None,
        "made": made,
        "said": said,
        "is_root": is_root,
        "may_make": not request.identity.rules,
        "user": user_id,
        "most_days": LONGEST_KEY_DAYS,
        "here": request.url("keys"),
        "sign_ins_url": request.url("sign-ins"),
    }
    return Shown("keys.html", values, message=message)


def _make(request: PortalRequest) -> NewApiKey:
    form = request.form
    user_id = form.get("user_id").strip() or None
    body = NewKey(
        label=form.get("label").strip() or None,
        expires_in_days=form.number(
            "days", LONGEST_KEY_DAYS, f"A key is good for 1 to {LONGEST_KEY_DAYS} days."
        ),
        rules=_rules(form.get("rules")) or None,
        user_id=user_id,
    )
    return request.call(create_key if user_id is None else create_any_key, body)


def _rules(text: str) -> list[dict[str, str]]:
    """A rule for each line: letters of what is allowed, and behind a blank the paths.

    Raises:
        InvalidInput: a line is no rule.
    """
    rules = []
    for number, line in enumerate(filter(None, map(str.strip, text.splitlines())), 1):
        letters, _, glob = line.partition(" ")
        if not glob.strip() or not set(letters) <= {*_LETTERS, "-"}:
            raise InvalidInput(f"Rule {number} is not like: rl /path/**", field="rules")
        flags = "".join(one if one in letters else "-" for one in _LETTERS)
        rules.append({glob.strip(): flags})
    return rules


def _revoke(request: PortalRequest) -> Message:
    is_root = request.identity.is_unrestricted_root
    request.call(revoke_any_key if is_root else revoke_key, request.form.require("key"))
    return Message("Revoked the key, and what was signed in with it.")


def _said(request: PortalRequest) -> dict[str, str]:
    return {name: request.form.get(name) for name in ("label", "days", "rules", "user_id")}


def _row(request: PortalRequest, key: ApiKey) -> dict[str, Any]:
    rules = [(glob, flags) for rule in key.rules for glob, flags in rule.items()]
    own = key.key_id == request.identity.key_id
    return {"key": key, "rules": rules, "is_in_use": own, "name": key.label or key.key_id}
