"""What other plugins may use of this one: who there is, in which groups, and what they may do.

Everything reads the system tree as of one moment, a ``Version`` that ``Database.system`` gives, and costs a
few lookups however many users, groups and grants there are.
"""

from __future__ import annotations

from svc_users.grants import (
    UserLookup,
    checked_grant,
    find_grant,
    grants_at,
    grants_of,
    put_grant,
    remove_grant,
    require_group,
)
from svc_users.lookup import find_user, find_user_by_name, group_named, groups_of, identity_stamp
from svc_users.names import (
    checked_email,
    checked_group_name,
    checked_tags,
    checked_username,
    name_key,
    own_group,
    user_of_own_group,
)
from svc_users.records import Grant, Group, User
from svc_users.rights import GrantedRights
from svc_users.rights_cache import RightsCache

__all__ = [
    "Grant",
    "GrantedRights",
    "Group",
    "RightsCache",
    "User",
    "UserLookup",
    "checked_email",
    "checked_grant",
    "checked_group_name",
    "checked_tags",
    "checked_username",
    "find_grant",
    "find_user",
    "find_user_by_name",
    "grants_at",
    "grants_of",
    "group_named",
    "groups_of",
    "identity_stamp",
    "name_key",
    "own_group",
    "put_grant",
    "remove_grant",
    "require_group",
    "user_of_own_group",
]
