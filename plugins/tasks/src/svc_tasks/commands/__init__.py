"""``svc task`` and ``svc cron``, against a file or a server."""
