"""A page of the portal."""
