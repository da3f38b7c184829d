"""Signing in at the portal by a key, and the page of keys."""
