"""The commands of snapshots, forks, merge and restore.

Words of a shell flow in; each command opens the database file, which a server may have open too, calls
one function of the model, and prints lines for people or JSON for scripts.
"""
