"""The background job that removes the records of links that ended."""

from __future__ import annotations

from svc.plugin import BackgroundJob, JobContext
from svc_sharing.links import prune_links

__all__ = ["PruneLinksJob"]


class PruneLinksJob(BackgroundJob):
    """Looks once an hour at all links, a page a commit."""

    name = "share-link-pruning"
    interval_s = 3600.0

    def run(self, context: JobContext) -> None:
        """Removes the records; one that is killed begins anew at its next run."""
        removed, after = prune_links(context.database, None)
        while after is not None and not context.is_stopping:
            more, after = prune_links(context.database, after)
            removed += more
        if removed:
            context.logger.info("removed the records of %d links that ended", removed)
