"""Shares with users and groups, and links that open without an account."""
