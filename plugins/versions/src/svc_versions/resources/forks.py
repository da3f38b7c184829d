"""``/version/fork...`` and ``/versions/forks...``: make, list, promote, abandon."""

from __future__ import annotations

import falcon
import msgspec

from svc.errors import Forbidden, NotFound
from svc.plugin import (
    Operation,
    RequestContext,
    context_of,
    has_body,
    pause,
    query_flag,
    read_json,
    requires_identity,
    requires_root,
    requires_somewhere,
    run_blocking,
    send_json,
)
from svc_versions.forks import (
    Fork,
    abandon_fork,
    create_fork,
    find_fork,
    list_abandoned,
    list_forks,
    promote_fork,
    snapshot_or_version,
)
from svc_versions.requests import CHANGES, authorize_listing, authorize_making, settings_of

__all__ = ["ForkListResource", "ForkResource", "ForksResource", "MakeForkResource"]


_PAUSE_EVERY = 256


class ForkBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a fork: from a snapshot or another version, else from HEAD."""

    name: str
    base: str | None = None


class PromotionBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a promotion; it may be absent."""

    force: bool = False


class MakeForkResource:
    """Where forks are made."""

    @requires_somewhere(*CHANGES)
    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Makes one: 201."""
        authorize_making(req)
        body = read_json(req, ForkBody, settings_of(req).maximum_json)
        context = context_of(req)
        if body.base is not None and not context.identity.is_unrestricted_root:
            _authorize_base(context, body.base)
        fork = create_fork(context.database, body.name, base=body.base, actor=context.actor)
        send_json(resp, fork.as_json(), 201)


def _authorize_base(context: RequestContext, base: str) -> None:
    """Makes sure that a fork of the past brings back nothing that its maker may not see.

    On a fork, a file that HEAD has lost is a file like any other, for everybody; so whoever makes one needs
    the permission to see deleted files on each of them. Forbidden does not say which paths lack it.
    """
    database = context.database
    if context.may_below(Operation.DELETE, ()):
        snapshot_or_version(database, base)
        return
    head, past = database.at(), database.at(snapshot_or_version(database, base))
    for number, change in enumerate(head.diff(past)):
        if number % _PAUSE_EVERY == 0:
            pause()
        if change.before is None and not context.may(Operation.DELETE, change.path):
            raise Forbidden("The version holds what was deleted since, and what you may not see.")


class ForksResource(MakeForkResource):
    """All active forks, as the newer family shows them."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists them, newest first; with ``abandoned=true`` what is left of abandoned ones instead."""
        authorize_listing(req)
        database = context_of(req).database
        if query_flag(req, "abandoned"):
            found = [one.as_json() for one in run_blocking(list_abandoned, database)]
        else:
            found = [one.as_json() for one in run_blocking(list_forks, database)]
        send_json(resp, {"forks": found})


class ForkListResource:
    """All active forks, as the older family shows them: a bare array."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Lists them, newest first."""
        authorize_listing(req)
        forks = run_blocking(list_forks, context_of(req).database)
        send_json(resp, [one.as_json() for one in forks])


class ForkResource:
    """One fork, and below it ``promote``: a name may hold slashes, so one template takes both."""

    @requires_identity
    def on_get(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Describes it."""
        authorize_listing(req, Fork.missing(name))
        send_json(resp, find_fork(context_of(req).database, name).as_json())

    @requires_root
    def on_post(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Promotes it: its state becomes HEAD."""
        found, separator, action = name.rpartition("/")
        if not separator or action != "promote":
            raise NotFound("There is no such resource.")
        force = query_flag(req, "force")
        if has_body(req):
            force = read_json(req, PromotionBody, settings_of(req).maximum_json).force or force
        context = context_of(req)
        promotion = promote_fork(context.database, found, force=force, actor=context.actor)
        version = promotion.version.hex()
        resp.set_header("X-Svc-Version", version)
        send_json(
            resp,
            {
                "promoted": True,
                "name": promotion.fork.name,
                "version": version,
                "previous_version": promotion.previous.hex(),
            },
        )

    @requires_root
    def on_delete(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """Abandons it."""
        context = context_of(req)
        fork = abandon_fork(context.database, name, actor=context.actor)
        send_json(resp, {"abandoned": True, "name": fork.name, "root_hash": fork.root.hex()})
