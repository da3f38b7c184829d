"""Posts events to a URL."""
