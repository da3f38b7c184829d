"""``svc task`` and ``svc cron``, on a file or a server."""
