"""Signing in at the portal by a link that is mailed."""
