"""Users as people call them: by name, beside their ids, in what commands print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from svc.errors import NotFound, SvcError

if TYPE_CHECKING:
    from svc.operations import DeclaredOperation
    from svc_cli.source import Service

__all__ = ["UserNames"]

_MOST_ASKED = 200
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class UserNames:
    """Names the users of ids that a command prints, as far as who calls may know them.

    A plugin whose descriptor has ``names_users`` is asked, once for each user, and for 200 at most.
    """

    def __init__(self, service: Service) -> None:
        """Asks nobody yet.

        Args:
            service: what the command works on.
        """
        self._service = service
        self._operation: DeclaredOperation[..., Any] | None = None
        self._is_known = False
        self._names: dict[str, str | None] = {}

    def shown(self, user_id: str) -> str:
        """Returns ``name (id)``; of root the name, and the id alone where no name is known. Blocks."""
        from svc.plugins import ROOT_USER_ID

        if user_id == ROOT_USER_ID:
            return "root"
        name = self.name(user_id)
        return user_id if name is None else f"{name} ({user_id})"

    def shown_in(self, text: str) -> str:
        """Returns a text, such as ``user:<id>``, in which each id stands behind the user's name. Blocks."""
        return _ID.sub(lambda found: self.shown(found[0]), text)

    def name(self, user_id: str) -> str | None:
        """Returns the name of a user; None where it is not known. Blocks."""
        if user_id not in self._names:
            if len(self._names) >= _MOST_ASKED or not _ID.fullmatch(user_id):
                return None
            self._names[user_id] = self._ask(user_id)
        return self._names[user_id]

    def _ask(self, user_id: str) -> str | None:
        if not self._is_known:
            self._is_known, self._operation = True, _operation()
        if self._operation is None:
            return None
        try:
            name = self._service.call(self._operation, user_id).username
        except NotFound:
            return None
        except SvcError:
            # Whoever may not see one user may not see the others.
            self._operation = None
            return None
        return name if isinstance(name, str) else None


def _operation() -> DeclaredOperation[..., Any] | None:
    from svc_cli.opening import boot_commands

    for descriptor in boot_commands().descriptors.values():
        if descriptor.names_users is not None:
            return next(
                (one for one in descriptor.declared_operations() if one.name == descriptor.names_users), None
            )
    return None
