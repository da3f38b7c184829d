"""The check of ``/.config/cron.json`` when one is stored: a bad file is refused, and the old one stays."""

from __future__ import annotations

from svc.plugin import ContentCheck, Path, PluginContext
from svc_tasks.api import TASK_TYPES
from svc_tasks.schedules.configuration import CRON, parse_cron_file
from svc_tasks.schedules.store import stored_schedules

__all__ = ["CronCheck"]


class CronCheck(ContentCheck):
    """Checks schedules against the task types that are in use."""

    name = "tasks.cron"
    suffixes = (CRON.path,)
    maximum_size = CRON.maximum_bytes

    def check(self, path: Path, content: bytes, context: PluginContext) -> None:
        """Checks a file; one of this name elsewhere is anybody's own."""
        if path == CRON.path:
            database = context.database
            parse_cron_file(
                content, context.extensions(TASK_TYPES), database, stored_schedules(database.at())
            )
