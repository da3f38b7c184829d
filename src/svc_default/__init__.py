"""The default plugin set: what a new database enables when nothing else is asked for.

The kernel knows no plugin by name; it reads this tuple through the entry point
``svc.plugin_sets``, so a distribution that ships another set replaces it by ordinary packaging.
"""

PLUGINS = (
    "auth.disabled",
    "auth.magic-link",
    "auth.self",
    "backup",
    "docs",
    "events",
    "events.sse",
    "events.webhook",
    "files",
    "history",
    "index.exact",
    "index.fulltext",
    "index.phonetic",
    "index.trigram",
    "metrics",
    "mirror",
    "parsers",
    "portal",
    "query",
    "sharing",
    "sync",
    "sync.http",
    "task.backup",
    "task.gc",
    "task.reindex",
    "task.verify",
    "tasks",
    "users",
    "versions",
)
