"""The commands of users, groups, grants and their explanation.

Each asks the file, which a server may have open too, or the server, and prints lines for people or JSON for
scripts.
"""
