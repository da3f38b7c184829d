"""The hooks of the plugin: its routes, its views, its commands and its background job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import hookimpl

if TYPE_CHECKING:
    from svc_events.api import EventType

    from svc.plugin import CommandRegistry, JobRegistry, NamedRegistry, RouteRegistry, View

__all__ = [
    "COMMANDS",
    "svc_background",
    "svc_register_commands",
    "svc_register_event_types",
    "svc_register_routes",
    "svc_register_views",
]

COMMANDS = {
    "snapshot": ("svc_versions.commands.snapshot:snapshot", "Makes, lists and restores snapshots."),
    "fork": ("svc_versions.commands.fork:fork", "Makes, lists, promotes and abandons forks."),
    "merge": ("svc_versions.commands.merge:merge", "Merges a fork or snapshot into HEAD or a fork."),
    "restore": ("svc_versions.commands.restore:restore", "Puts a file or directory back as it was."),
}
"""Where each command is, and its line in the help."""


@hookimpl
def svc_register_routes(routes: RouteRegistry) -> None:
    """Adds the routes of snapshots, forks, restore, merge and lifecycle settings."""
    from svc_versions.resources.forks import (
        ForkListResource,
        ForkResource,
        ForksResource,
        MakeForkResource,
    )
    from svc_versions.resources.lifecycle import LifecycleResource
    from svc_versions.resources.merging import MergeResource
    from svc_versions.resources.restoring import FileRestoreResource, RestoreResource
    from svc_versions.resources.snapshots import (
        MakeSnapshotResource,
        SnapshotListResource,
        SnapshotResource,
        SnapshotsResource,
    )

    snapshots, snapshot = SnapshotsResource(), SnapshotResource()
    forks, fork = ForksResource(), ForkResource()
    restore, file_restore = RestoreResource(), FileRestoreResource()
    routes.add("/version/snapshot", MakeSnapshotResource())
    routes.add("/version/snapshots", SnapshotListResource())
    routes.add("/version/snapshot/{name:text}", snapshot)
    routes.add("/version/fork", MakeForkResource())
    routes.add("/version/forks", ForkListResource())
    routes.add("/version/fork/{name:text}", fork)
    routes.add("/version/restore", restore)
    routes.add("/version/file-restore/{path:path}", file_restore)
    routes.add("/versions/snapshots", snapshots)
    routes.add("/versions/snapshots/{name:text}", snapshot)
    routes.add("/versions/forks", forks)
    routes.add("/versions/forks/{name:text}", fork)
    routes.add("/versions/restore", restore)
    routes.add("/versions/file-restore/{path:path}", file_restore)
    routes.add("/versions/merge", MergeResource())
    routes.add("/system/lifecycle", LifecycleResource())


@hookimpl
def svc_register_views(views: NamedRegistry[View]) -> None:
    """Adds the view of HEAD's jumps."""
    from svc_versions.ancestry import JumpsView

    views.add(JumpsView())


@hookimpl
def svc_register_commands(commands: CommandRegistry) -> None:
    """Adds the commands of snapshots, forks, restore and merge."""
    from svc.plugin import LazyCommand

    for name, (home, summary) in COMMANDS.items():
        commands.add(LazyCommand(name, home, summary))


@hookimpl
def svc_background(jobs: JobRegistry) -> None:
    """Adds the job that deletes snapshots which are too old."""
    from svc_versions.retention import RetentionJob

    jobs.add(RetentionJob())


@hookimpl
def svc_register_event_types(event_types: NamedRegistry[EventType]) -> None:
    """Adds ``versions_created``."""
    from svc_versions.event_types import VersionEvents

    event_types.add(VersionEvents())
