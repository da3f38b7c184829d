"""The commands of snapshots, forks, merge and restore.

Each asks the file, which a server may have open too, or the server, and prints lines for people or JSON for
scripts.
"""
