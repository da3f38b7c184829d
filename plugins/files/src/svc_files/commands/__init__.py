"""The shell commands of the plugin: put, get, ls, cat, rm, load and dump.

Each command works on a ``FileStore``, which is a database file or a server alike, and prints lines for people
or JSON for scripts. Exit codes are those of ``svc.errors``.
"""
