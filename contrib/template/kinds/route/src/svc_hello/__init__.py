"""Says how much lies below a path."""
