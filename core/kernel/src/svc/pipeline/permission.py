"""May this identity do this to this path? ``permits`` decides, for every route, listing and event.

Root may do everything; everyone else what the rights of the user grant, and silence denies. The rules of a
scoped key then narrow what is left, root's too. A share key has no user: its rules are all it has.

A file that configures something is not like others: to store one in a directory ``.svc-config`` takes the
right to configure besides, and ``/.config`` is changed by root alone, with a key that has no rules.
"""

from __future__ import annotations

from svc.paths import DIRECTORY_CONFIGURATION, SERVER_CONFIGURATION, SYSTEM_NAMES, Path
from svc.pipeline.scoped_rules import FLAG_LETTERS, compiled_rules, parse_flags
from svc.plugins.contracts import Identity, Operation, Rights

__all__ = [
    "FLAG_LETTERS",
    "effective_permissions",
    "flags_of_mask",
    "may_somewhere",
    "parse_flags",
    "permits",
    "permitted",
]

_EVERYTHING = sum(operation.bit for operation in Operation)
_LIST = Operation.LIST.bit
_STORE = Operation.CREATE.bit | Operation.UPDATE.bit
_CHANGE = _STORE | Operation.DELETE.bit
_FLAGS = tuple(
    "".join(operation.letter if mask & operation.bit else "-" for operation in Operation)
    for mask in range(_EVERYTHING + 1)
)


def permits(
    identity: Identity, operation: Operation, path: Path, *, below: bool = False, directory: bool = False
) -> bool:
    """Whether ``identity`` may do ``operation`` to ``path``, whose links the caller has resolved.

    Nobody may do anything to a path of the system namespace this way: the system has routes of its own.

    ``below`` asks for the path and everything below it, whatever that is; what configures directories below
    goes with them. It is decided from what was granted alone, without a look at the tree: yes is certain, and
    no means that each path must be asked for.

    ``directory`` says whether a directory stands at the path. Those on the way to what may be read or listed
    can be listed, so that a client can walk down to it; files and links at such places do not exist for it.
    """
    if path and path[0] in SYSTEM_NAMES:
        return False
    if operation.bit & _CHANGE:
        if not identity.is_unrestricted_root and (path[0] == SERVER_CONFIGURATION if path else below):
            return False
        if (
            operation.bit & _STORE
            and _is_configuration(path)
            and not permits(identity, Operation.CONFIGURE, path, below=below)
        ):
            return False
    rules, rights = identity.rules, identity.rights
    if rules:
        compiled = compiled_rules(rules)
        if below:
            if not compiled.allows_below(operation, path):
                return False
        elif not compiled.mask(path, directory=directory) & operation.bit:
            return False
    if identity.is_root:
        return True
    if rights is None:
        # A share key (no owner) has its rules as its only authority; they allowed it above.
        return identity.user_id is None and bool(rules)
    if not below:
        return rights.allows(operation, path) or (
            directory and operation is Operation.LIST and _leads_on(rights, path)
        )
    # The rights of an older auth mode may lack the method.
    allows_below = getattr(rights, "allows_below", None)
    return allows_below is not None and bool(allows_below(operation, path))


def may_somewhere(identity: Identity, operation: Operation) -> bool:
    """Whether there may be a path, empty or not, to which ``identity`` may do ``operation``.

    Decided from what was granted alone. No is certain; yes may be said where a key's rules and its user's
    rights never meet, and of rights that can't tell.
    """
    rules, rights = identity.rules, identity.rights
    if rules and not any(operation in (parse_flags(rule.flags) or ()) for rule in rules):
        return False
    if identity.is_root:
        return True
    if rights is None:
        return identity.user_id is None and bool(rules)
    ask = getattr(rights, "visible_parts", None)
    parts = None if ask is None else ask(operation, ())
    return parts is None or any(True for _ in parts)


def permitted(identity: Identity, path: Path, *, directory: bool = False) -> int:
    """Returns everything that ``identity`` may do to ``path``: the bits of ``Operation.bit``.

    The same decision as ``permits``, for all operations at once.

    Args:
        identity: who asks.
        path: as for ``permits``.
        directory: as for ``permits``.
    """
    if path and path[0] in SYSTEM_NAMES:
        return 0
    rules = identity.rules
    mask = compiled_rules(rules).mask(path, directory=directory) if rules else _EVERYTHING
    if mask and not identity.is_root:
        mask &= _granted(identity, path, mask, directory)
    if mask & _CHANGE and _is_configuration(path):
        mask = _of_configuration(identity, path, mask)
    return mask


def _granted(identity: Identity, path: Path, mask: int, directory: bool) -> int:
    """Returns the bits that the user's own rights, or the rules of a share key, leave of a mask."""
    rights = identity.rights
    if rights is None:
        return mask if identity.user_id is None and identity.rules else 0
    all_at_once = getattr(rights, "mask", None)
    if all_at_once is not None:
        granted = int(all_at_once(path))
    else:
        granted = sum(
            operation.bit
            for operation in Operation
            if mask & operation.bit and rights.allows(operation, path)
        )
    if directory and not granted & _LIST and mask & _LIST and _leads_on(rights, path):
        granted |= _LIST
    return granted


def _leads_on(rights: Rights, path: Path) -> bool:
    """Whether a directory is on the way to something granted; the rights of older modes do not say."""
    ask = getattr(rights, "leads_on", None)
    return ask is not None and bool(ask(path))


def _of_configuration(identity: Identity, path: Path, mask: int) -> int:
    if path[0] == SERVER_CONFIGURATION and not identity.is_unrestricted_root:
        mask &= ~_CHANGE
    return mask if mask & Operation.CONFIGURE.bit else mask & ~_STORE


def _is_configuration(path: Path) -> bool:
    return DIRECTORY_CONFIGURATION in path or path[:1] == (SERVER_CONFIGURATION,)


def effective_permissions(identity: Identity, path: Path, *, directory: bool = False) -> str:
    """Returns the 8-character flags of what ``identity`` may do to ``path``; see ``permitted``."""
    return _FLAGS[permitted(identity, path, directory=directory)]


def flags_of_mask(mask: int) -> str:
    """Returns the flags string of what ``permitted`` has returned."""
    return _FLAGS[mask]
