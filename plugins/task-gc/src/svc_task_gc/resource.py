"""``/system/gc``: collects garbage, and answers with the report."""

from __future__ import annotations

import falcon

from svc.errors import InvalidInput
from svc.plugin import SvcRequest, has_body, query_flag, query_text, requires_root, send_json
from svc_task_gc.configuration import GcConfiguration
from svc_task_gc.process import collect_in_process

__all__ = ["GcResource"]

_MOST_DAYS = 100_000
_PARAMETERS = ("dry_run", "keep_days")


class GcResource:
    """The collection of garbage."""

    @requires_root
    def on_post(self, req: SvcRequest, resp: falcon.Response) -> None:
        """Collects in a process of its own, and answers when it has ended; with ``dry_run=true`` only counts.

        ``keep_days`` is taken instead of that of the settings.
        """
        unknown = [name for name in req.params if name not in _PARAMETERS]
        if unknown or has_body(req):
            # What was meant to be a dry run must not be taken for the real one.
            raise InvalidInput(
                "This takes the query parameters dry_run and keep_days, no others, and no body.",
                field=unknown[0] if unknown else "body",
            )
        context = req.context
        request = {
            "dry_run": query_flag(req, "dry_run"),
            "keep_days": _days(query_text(req, "keep_days")),
            "actor": context.actor,
        }
        settings = context.configuration or GcConfiguration()
        # Not in a thread: under gevent only that of the loop can wait for processes, and it blocks nobody.
        send_json(resp, collect_in_process(context.database, settings, request))


def _days(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days <= _MOST_DAYS:
        raise InvalidInput(
            f"The parameter keep_days is a number from 0 to {_MOST_DAYS:,}.", field="keep_days"
        )
    return days
