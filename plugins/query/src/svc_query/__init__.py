"""Queries and search over indexed files: a plugin of svc."""
