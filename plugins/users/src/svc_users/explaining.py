"""Why somebody may or may not do something to a path, rule by rule.

The answers come from the same ``GrantedRights`` as every request's; what stands beside them says which level,
which group and which grant decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from svc.plugin import (
    ROOT_USER_ID,
    Identity,
    Operation,
    Path,
    Version,
    format_path,
    in_turns,
    is_system_path,
    path_not_found,
    permitted,
)
from svc_users.grants import grants_of
from svc_users.lookup import memberships, named_user
from svc_users.models import Access, AccessGrant, AccessGroup, AccessLevel, Decision
from svc_users.names import ROOT_NAME, name_key, own_group, user_id_of
from svc_users.records import FLAGS, Grant, User, path_of
from svc_users.rights import GrantedRights, Rule, bit_of, rule_of

__all__ = ["explain_access"]

_OPERATIONS = tuple(Operation)


def explain_access(system: Version, path: Path, user: str) -> Access:
    """Explains what a user may do to a path of the user tree; NotFound where there is no such user.

    ``user`` is an id or a name; ``root`` and the nil UUID are root.
    """
    if is_system_path(path):
        raise path_not_found(path)
    if user_id_of(user) == ROOT_USER_ID or name_key(user) == name_key(ROOT_NAME):
        return _of_root(path)
    found = named_user(system, user)
    groups = _memberships(system, found)
    by_depth: dict[int, list[_Pair]] = {}
    for pair in _on_the_way(system, path, groups):
        by_depth.setdefault(len(pair[1].path), []).append(pair)
    levels = sorted(by_depth.items(), key=itemgetter(0), reverse=True)
    rights = GrantedRights(rule for _, pairs in levels for _, rule in pairs)
    decisions = [_decide(found, operation, path, levels, rights) for operation in _OPERATIONS]
    return Access(
        path=format_path(path),
        user_id=found.user_id,
        username=found.username,
        is_active=found.is_active,
        is_root=False,
        permissions="".join(one.flag if one.allowed else "-" for one in decisions),
        groups=groups,
        levels=[
            AccessLevel(format_path(path[:depth]), [_shown(pair, path) for pair in pairs])
            for depth, pairs in levels
        ],
        decisions=decisions,
    )


_Pair = tuple[Grant, Rule]


def _of_root(path: Path) -> Access:
    reason = "root may do everything"
    return Access(
        path=format_path(path),
        user_id=ROOT_USER_ID,
        username=ROOT_NAME,
        is_active=True,
        is_root=True,
        permissions=FLAGS,
        groups=[],
        levels=[],
        decisions=[
            Decision(operation.name.lower(), operation.letter, True, None, [], [], reason)
            for operation in _OPERATIONS
        ],
    )


def _memberships(system: Version, user: User) -> list[AccessGroup]:
    found = {own_group(user.user_id): "self"}
    for tag, group in memberships(system, user):
        found.setdefault(group.name, f"tag {tag}" if tag else "member")
    return [AccessGroup(group, by) for group, by in found.items()]


def _on_the_way(system: Version, path: Path, groups: list[AccessGroup]) -> Iterator[_Pair]:
    """The grants of the groups that hang on the path or above it."""
    for membership in groups:
        for grant in in_turns(grants_of(system, membership.group)):
            above = path_of(grant)
            if path[: len(above)] == above:
                yield grant, rule_of(grant)


def _decide(
    user: User, operation: Operation, path: Path, levels: list[tuple[int, list[_Pair]]], rights: GrantedRights
) -> Decision:
    name, letter = operation.name.lower(), operation.letter
    if not user.is_active:
        return Decision(name, letter, False, None, [], [], "the user is deactivated")
    granted = rights.allows(operation, path)
    allowed = bool(permitted(Identity(user.user_id, user.username, rights=rights), path) & operation.bit)
    for depth, pairs in levels:
        saying = [pair for pair in pairs if _applies(pair, path) and _says(pair[1], operation)]
        denying = [pair for pair in saying if _denies(pair[1], operation)]
        deciding = denying or saying
        if deciding:
            groups = sorted({grant.group for grant, _ in deciding})
            verb = "denied" if denying else "allowed"
            reason = f"{verb} at {format_path(path[:depth])} to {', '.join(groups)}"
            if denying and len(saying) > len(denying):
                reason += "; deny beats allow"
            if granted and not allowed:
                reason += "; but here is configuration, which only root or those who may configure change"
            ids = sorted(grant.grant_id for grant, _ in deciding)
            return Decision(name, letter, allowed, format_path(path[:depth]), groups, ids, reason)
    return Decision(name, letter, allowed, None, [], [], "no grant says anything")


def _shown(pair: _Pair, path: Path) -> AccessGrant:
    grant = pair[0]
    return AccessGrant(
        grant.grant_id, grant.group, grant.allow, grant.deny, grant.path_pattern, _applies(pair, path)
    )


def _applies(pair: _Pair, path: Path) -> bool:
    rule = pair[1]
    return rule.pattern is None or rule.pattern.matches(format_path(path[len(rule.path) :])) is not None


def _denies(rule: Rule, operation: Operation) -> bool:
    return bool(rule.deny & bit_of(operation))


def _says(rule: Rule, operation: Operation) -> bool:
    return bool((rule.allow | rule.deny) & bit_of(operation))
