"""The shell commands of the plugin: put, get, ls, cat, rm, load and dump.

Arguments and options flow in; each command works on a ``FileStore``, which is a database file or a
server alike; lines for people or JSON for scripts flow out, and exit codes of ``svc.errors``.
"""
