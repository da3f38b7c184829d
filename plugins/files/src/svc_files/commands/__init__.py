"""The shell commands of the plugin: put, get, ls, cat, rm, load and dump.

Each works on a ``FileStore``, a database file or a server alike, and prints lines for people or JSON for
scripts.
"""
