"""Substrings, similar and misspelt values: a plugin of svc."""
