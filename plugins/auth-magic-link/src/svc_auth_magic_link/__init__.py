"""Sign-in by a link that is mailed."""
