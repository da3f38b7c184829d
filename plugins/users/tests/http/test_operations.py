"""The contract of operations, for those of users, groups and grants."""

from __future__ import annotations

from svc.errors import AlreadyExists, Conflict, NotFound
from svc.plugin import ROOT_USER_ID
from svc_testing import OperationsContract, Teller
from svc_users import operations as op
from svc_users.models import (
    AccessQuery,
    GrantQuery,
    GroupChange,
    NewGrant,
    NewGroup,
    NewUser,
    PageQuery,
    SeeingQuery,
    UserChange,
    UserQuery,
)


class TestOperations(OperationsContract):
    plugin_id = "users"

    def story(self, call: Teller) -> None:
        ann = call(op.create_user, NewUser("ann", tags=["staff"]))
        bob = call(op.create_user, NewUser("bob"))
        call.refused(AlreadyExists, op.create_user, NewUser("Ann"))
        call(op.list_users)
        call(op.list_users, UserQuery(tag="staff"))
        call(op.show_user, ann.user_id)
        call(op.change_user, ann.user_id, UserChange(email="ann@example.org"))
        call.refused(AlreadyExists, op.change_user, ann.user_id, UserChange(username="bob"))
        call.refused(Conflict, op.change_user, ROOT_USER_ID, UserChange(username="root"))
        call(op.deactivate_user, bob.user_id)
        call.refused(Conflict, op.deactivate_user, ROOT_USER_ID)
        call(op.create_group, NewGroup("staff", members=[ann.user_id, bob.user_id]))
        call.refused(AlreadyExists, op.create_group, NewGroup("STAFF"))
        call(op.list_groups)
        call(op.show_group, "staff", PageQuery())
        call.refused(NotFound, op.show_group, "none")
        call(op.change_group, "staff", GroupChange(tags=["staff"]))
        grant = call(op.create_grant, NewGrant("/a", "staff", allow="-r------")).value
        assert not call(op.create_grant, NewGrant("/a", "staff", allow="cr------")).created
        call.refused(NotFound, op.create_grant, NewGrant("/a", "none"))
        call(op.list_grants, GrantQuery(path="/a"))
        call.refused(NotFound, op.list_grants, GrantQuery(group="none"))
        call(op.show_grant, grant.grant_id)
        call(op.explain_access, AccessQuery("/a/b", "ann"))
        call.refused(NotFound, op.explain_access, AccessQuery("/a/b", "none"))
        call(op.list_as_user, SeeingQuery(path="/", user="ann"))
        call.refused(NotFound, op.list_as_user, SeeingQuery(path="/", user="none"))
        call(op.delete_grant, grant.grant_id)
        call(op.delete_group, "staff")
